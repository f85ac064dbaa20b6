package deletionflow

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// All pods of a large namespace in one response would not be decided in time and fill
// the memory of the webhook.
func TestThePodsOfANamespaceAreReadInPagesOfMetadata(t *testing.T) {
	const pods = 1200
	var pages atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages.Add(1)
		query := r.URL.Query()
		limit, err := strconv.Atoi(query.Get("limit"))
		if err != nil || limit < 1 || query.Get("fieldSelector") != "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed" || !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			t.Errorf("asked for %s as %s", r.URL, r.Header.Get("Accept"))
			limit = pods
		}
		first, _ := strconv.Atoi(query.Get("continue")) // 0 for the first page
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(pageOf(first, min(first+limit, pods), pods)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	fx := newFixture(t, newNamespace(nil), newFlow("cluster", 9999, func(f *v1alpha1.PodDeletionFlowControl) {
		f.Spec.WhiteListSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch": "true"}}
	}))
	var err error
	if fx.guard.Objects, err = metadata.NewForConfig(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	answer := fx.ask(t, ofNamespace(t, newNamespace(nil)))
	if got := fx.counted(t, "cluster"); !answer.Response.Allowed || got != pods-2 {
		t.Errorf("%d counted: %+v", got, answer.Response)
	}
	if pages.Load() != 3 || len(fx.kube.Actions()) > 0 {
		t.Errorf("%d pages, other reads %v", pages.Load(), fx.kube.Actions())
	}
}

// pageOf returns the pods from first to last, of which the first is terminating and
// the last of all is in the white list.
func pageOf(first, last, all int) *metav1.PartialObjectMetadataList {
	now := metav1.NewTime(zero)
	page := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for i := first; i < last; i++ {
		p := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint(i)}}
		switch i {
		case 0:
			p.DeletionTimestamp = &now
		case all - 1:
			p.Labels = map[string]string{"batch": "true"}
		}
		page.Items = append(page.Items, p)
	}
	if last < all {
		page.Continue = strconv.Itoa(last)
	}
	return page
}
