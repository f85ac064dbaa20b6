package generatedbudget

import (
	"context"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/internal/kindwatch"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// customWorkloads caches workloads of CRDs, which may be added and removed while the
// process runs. Workloads of a kind that is not served are not found, and budgets
// that were generated for them stay.
type customWorkloads struct {
	kindwatch.Informers[servedKind]
	// served reports whether the API server serves a kind in a version.
	served func(schema.GroupVersionResource) (bool, error)
	// changed is called with the key of each workload that changes.
	changed func(types.NamespacedName)
}

// servedKind is a kind in a version that the API server serves.
type servedKind struct {
	kind    kind
	version version
}

func newCustomWorkloads(client dynamic.Interface, logger *zap.SugaredLogger, served func(schema.GroupVersionResource) (bool, error)) *customWorkloads {
	c := &customWorkloads{served: served}
	c.Logger = logger
	c.New = func(s servedKind) (cache.SharedIndexInformer, error) {
		informer := dynamicinformer.NewFilteredDynamicInformer(client,
			schema.GroupVersionResource{Group: s.kind.group, Version: s.version.name, Resource: s.kind.resource}, "", 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
		return informer, informer.SetTransform(func(obj any) (any, error) {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				return s.kind.read(s.version, u), nil
			}
			return obj, nil // a tombstone, or transformed already
		})
	}
	_ = c.Handle(controller.HandleAll(func(obj any) { // no informer that could reject it
		if w, ok := wiring.Object[*workload](obj); ok {
			c.changed(keyOf(w.kind, w.GetNamespace(), w.GetName()))
		}
	}))
	return c
}

// run starts and stops informers until ctx ends.
func (c *customWorkloads) run(ctx context.Context) {
	wait.UntilWithContext(ctx, c.converge, kindwatch.DiscoveryInterval)
}

// converge starts and stops informers according to the kinds that are served.
func (c *customWorkloads) converge(ctx context.Context) {
	wanted := map[schema.GroupKind]servedKind{}
	for _, k := range customKinds() {
		s, ok, err := c.find(k)
		if err != nil {
			c.Logger.Warnw("could not ask the API server whether it serves a kind of workload", "kind", k.id, "error", err)
			s, ok = c.Kind(k.groupKind()) // leave it as it is
		}
		if ok {
			wanted[k.groupKind()] = s
		}
	}
	c.Converge(ctx, wanted)
}

// find returns a kind in the newest served version.
func (c *customWorkloads) find(k kind) (s servedKind, ok bool, err error) {
	for _, v := range k.versions {
		ok, err := c.served(schema.GroupVersionResource{Group: k.group, Version: v.name, Resource: k.resource})
		if err != nil || ok {
			return servedKind{k, v}, ok, err
		}
	}
	return servedKind{}, false, nil
}

// get returns a workload, or nil.
func (c *customWorkloads) get(k kind, namespace, name string) *workload {
	found, _ := c.Object(k.groupKind(), namespace, name).(*workload)
	return found
}

// enqueueAll enqueues the workloads of a namespace, or of all namespaces if it is "". enqueue may read workloads,
// which the loop over all kinds must not do.
func (c *customWorkloads) enqueueAll(namespace string, enqueue func(types.NamespacedName)) {
	var keys []types.NamespacedName
	for _, in := range c.All() {
		_ = cache.ListAllByNamespace(in.GetIndexer(), namespace, labels.Everything(), func(obj any) { // an in-memory store returns no error
			if w, ok := obj.(*workload); ok {
				keys = append(keys, keyOf(w.kind, w.GetNamespace(), w.GetName()))
			}
		})
	}
	for _, key := range keys {
		enqueue(key)
	}
}
