package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/breakwater-dev/breakwater/internal/drain"
	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/permission/initaction/server"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// newEmptyCluster returns an API server with namespace kube-system and no other objects.
func newEmptyCluster(t *testing.T) *httptest.Server {
	t.Helper()
	kinds := map[string]string{
		"pods":           `"apiVersion":"v1","kind":"Pod`,
		"configmaps":     `"apiVersion":"v1","kind":"ConfigMap`,
		"endpointslices": `"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		kind, listed := kinds[path.Base(r.URL.Path)]
		switch {
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"u"}}`)
		case !listed:
			t.Errorf("unexpected request %s", r.URL)
			http.NotFound(w, r)
		case r.URL.Query().Has("watch"):
			_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{%s","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", kind)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = fmt.Fprintf(w, `{%sList","metadata":{"resourceVersion":"1"},"items":[]}`, kind)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestTheProcessLimitsConnectionsOfStrangersAndDrains(t *testing.T) {
	config := &rest.Config{Host: newEmptyCluster(t).URL}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop() // before the API server ends
	program, err := build(ctx, process.Clients{Kube: kube, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	if program.MaxUnauthenticated != maxUnauthenticated || maxUnauthenticated == 0 {
		t.Errorf("strangers may open %d connections, 0 is any number", program.MaxUnauthenticated)
	}
	if !program.Endpoint {
		t.Error("a terminating replica would refuse connections")
	}
	if program.TLS == nil {
		t.Error("tokens would be sent without TLS")
	}
}

func TestTheProcessIsNotKilledWhileItDrains(t *testing.T) {
	builder.CheckGracePeriod(t, "../../../config/permission/600-init-action-server.yaml", drain.MaxWait+server.RequestTimeout+process.FlushTimeout)
}

func TestTheSampleAllowsInitContainersToConnect(t *testing.T) {
	const config = "../../../config/"
	sample := builder.Manifests[networkingv1.NetworkPolicy](t, config+"samples/permission-egress.yaml")[0]
	want := builder.Manifests[appsv1.Deployment](t, config+"permission/600-init-action-server.yaml")[0]
	if got := sample.Spec.PodSelector.MatchLabels; !maps.Equal(got, map[string]string{podmeta.Label: podmeta.LabelRequired}) {
		t.Errorf("it selects pods with %v", got)
	}
	rule := sample.Spec.Egress[0]
	if got := rule.To[0].NamespaceSelector.MatchLabels; !maps.Equal(got, map[string]string{corev1.LabelMetadataName: want.Namespace}) {
		t.Errorf("it allows namespaces with %v", got)
	}
	if got := labels.Set(rule.To[0].PodSelector.MatchLabels); !got.AsSelector().Matches(labels.Set(want.Spec.Template.Labels)) {
		t.Errorf("it allows pods with %v", got)
	}
	if got, want := rule.Ports[0].Port.IntVal, want.Spec.Template.Spec.Containers[0].Ports[0]; want.Name != "https" || got != want.ContainerPort {
		t.Errorf("it allows port %d, want %+v", got, want)
	}
}
