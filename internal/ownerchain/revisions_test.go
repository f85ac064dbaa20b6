package ownerchain

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// knativeService returns the Service web, whose requests go to a Revision.
func knativeService(revision string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": map[string]any{"namespace": "ns", "name": "web"},
		"status": map[string]any{"traffic": []any{map[string]any{"revisionName": revision, "percent": int64(100)}}},
	}}
}

func TestTheTrafficOfAKnativeService(t *testing.T) {
	for name, tc := range map[string]struct {
		there []runtime.Object
		err   error
		want  []string
		fails bool
	}{
		"it has traffic":     {there: []runtime.Object{knativeService("web-1")}, want: []string{"web-1"}},
		"it does not exist":  {},
		"it may not be read": {err: apierrs.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("no")), fails: true},
		"the API server does not serve the kind": {err: apierrs.NewGenericServerResponse(404, "get",
			schema.GroupResource{Resource: "services"}, "web", "404 page not found", 0, true)},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), tc.there...)
			if tc.err != nil {
				client.PrependReactor("get", "services", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			f := New(metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), newMapper()).WithObjects(client)
			got, err := f.RevisionsWithTraffic(t.Context(), "ns", "web", false)
			if (err != nil) != tc.fails {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALiveReadOfTrafficIgnoresTheCache(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), knativeService("web-1"))
	f := New(metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), newMapper()).WithObjects(client)
	check := func(live bool, want string) {
		t.Helper()
		got, err := f.RevisionsWithTraffic(t.Context(), "ns", "web", live)
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("live %t: got %v, %v; want %s", live, got, err, want)
		}
	}
	check(false, "web-1")
	services := client.Resource(workload.KnativeService.GroupVersionResource()).Namespace("ns")
	if _, err := services.Update(t.Context(), knativeService("web-2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	check(false, "web-1")
	check(true, "web-2")
	check(false, "web-2")
}
