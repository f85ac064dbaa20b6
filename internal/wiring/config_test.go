package wiring

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestAClientPrefersProtobuf(t *testing.T) {
	accepted := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accepted <- r.Header.Get("Accept")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`))
	}))
	defer server.Close()
	kube, err := kubernetes.NewForConfig(AcceptProtobuf(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal("a response in JSON is not read:", err)
	}
	if got := <-accepted; !strings.HasPrefix(got, "application/vnd.kubernetes.protobuf") {
		t.Errorf("the client accepts %q", got)
	}
}

// The controllers that cache all pods of the cluster collect garbage before their heap is twice
// its size. A hard limit would make them collect all the time in a larger cluster.
func TestControllersThatCacheAllPodsCollectGarbageEarly(t *testing.T) {
	value := regexp.MustCompile(`(?m)^ +- name: GOGC\n +value: "(\d+)"$`)
	for _, part := range []string{"core", "protection", "permission"} {
		raw, err := os.ReadFile("../../config/" + part + "/500-controller.yaml")
		if err != nil {
			t.Fatal(err)
		}
		found := value.FindSubmatch(raw)
		if found == nil {
			t.Fatalf("the controller of %s has no GOGC", part)
		}
		if percent, err := strconv.Atoi(string(found[1])); err != nil || percent < 50 || percent >= 100 {
			t.Errorf("the controller of %s has GOGC %s, %v: want at least 50, which costs little CPU, and less than 100", part, found[1], err)
		}
		if strings.Contains(string(raw), "GOMEMLIMIT") {
			t.Errorf("the controller of %s has a GOMEMLIMIT", part)
		}
	}
}
