// Package workloadinformertest fills the watch of workloads in tests.
package workloadinformertest

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"knative.dev/pkg/controller"
	fakedynamicclient "knative.dev/pkg/injection/clients/dynamicclient/fake"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// Unstructured is an object of a built-in kind as a dynamic client has it.
func Unstructured(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := scheme.Scheme.Convert(o, u, nil); err != nil {
		t.Fatal(err)
	}
	return u
}

// Workload is an object of a kind as reconcilers have it.
func Workload(t *testing.T, k workload.Kind, o runtime.Object) *workload.Workload {
	t.Helper()
	w, err := workload.FromUnstructured(k, Unstructured(t, o))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Add gives objects to the API server of the context's dynamic client.
func Add(ctx context.Context, t *testing.T, objects ...runtime.Object) {
	t.Helper()
	for _, o := range objects {
		if err := fakedynamicclient.Get(ctx).Tracker().Add(Unstructured(t, o)); err != nil {
			t.Fatal(err)
		}
	}
}

// Run runs the context's watch alone, and returns when it is synced.
func Run(ctx context.Context, t *testing.T) *workloadinformer.Watch {
	t.Helper()
	w := workloadinformer.Get(ctx)
	stop, over := make(chan struct{}), make(chan struct{})
	go func() { defer close(over); w.Run(stop) }()
	t.Cleanup(func() { close(stop); <-over })
	if !controller.WaitForCacheSyncQuick(t.Context().Done(), w.HasSynced) {
		t.Fatal("the watch of workloads did not sync")
	}
	return w
}
