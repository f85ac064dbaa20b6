package generatedbudget

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// discoveryInterval is how often the API server is asked which kinds it serves: one
// call per version.
const discoveryInterval = 15 * time.Second

// customWorkloads caches workloads of CRDs, which may be added and removed while the
// process runs. Workloads of a kind that is not served are not found, and budgets
// that were generated for them stay.
type customWorkloads struct {
	client dynamic.Interface
	// served reports whether the API server serves a kind in a version.
	served func(schema.GroupVersionResource) (bool, error)
	// changed is called with the key of each workload that changes.
	changed func(types.NamespacedName)
	logger  *zap.SugaredLogger

	mu      sync.RWMutex
	watched map[string]*watched
}

// watched is the informer of a kind and version.
type watched struct {
	version  string
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// run starts and stops informers until ctx ends.
func (c *customWorkloads) run(ctx context.Context) {
	wait.UntilWithContext(ctx, c.converge, discoveryInterval)
}

// converge starts and stops informers according to the kinds that are served.
func (c *customWorkloads) converge(ctx context.Context) {
	for _, k := range customKinds() {
		v, err := c.find(k)
		if err != nil {
			c.logger.Warnw("discover a workload kind", "kind", k.id, "error", err)
			continue
		}
		c.set(ctx, k, v)
	}
}

// find returns the newest served version; nil for none.
func (c *customWorkloads) find(k kind) (*version, error) {
	for i := range k.versions {
		ok, err := c.served(schema.GroupVersionResource{Group: k.group, Version: k.versions[i].name, Resource: k.resource})
		if err != nil || ok {
			return &k.versions[i], err
		}
	}
	return nil, nil
}

func (c *customWorkloads) set(ctx context.Context, k kind, v *version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.watched[k.id]
	if now != nil && (v == nil || v.name != now.version) {
		c.logger.Infow("stopped watching a workload kind", "kind", k.id, "version", now.version)
		now.stop()
		delete(c.watched, k.id)
		now = nil
	}
	if v == nil || now != nil {
		return
	}
	informer, err := c.informer(k, *v)
	if err != nil {
		c.logger.Errorw("watch a workload kind", "kind", k.id, "error", err)
		return
	}
	c.logger.Infow("started watching a workload kind", "kind", k.id, "version", v.name)
	informing, stop := context.WithCancel(ctx)
	c.watched[k.id] = &watched{version: v.name, informer: informer, stop: stop}
	go informer.RunWithContext(informing)
}

func (c *customWorkloads) informer(k kind, v version) (cache.SharedIndexInformer, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(c.client,
		schema.GroupVersionResource{Group: k.group, Version: v.name, Resource: k.resource}, "", 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
	if err := informer.SetTransform(func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			return k.read(v, u), nil
		}
		return obj, nil // a tombstone, or transformed already
	}); err != nil {
		return nil, err
	}
	enqueue := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			c.changed(keyOf(k, name.Namespace, name.Name))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, after any) { enqueue(after) }, DeleteFunc: enqueue,
	})
	return informer, err
}

// get returns a workload, or nil.
func (c *customWorkloads) get(k kind, namespace, name string) *workload {
	c.mu.RLock()
	defer c.mu.RUnlock()
	in := c.watched[k.id]
	if in == nil {
		return nil
	}
	obj, _, err := in.informer.GetIndexer().GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil {
		return nil // a cache returns no error
	}
	found, _ := obj.(*workload)
	return found
}

// all enqueues the workloads of a namespace, or of all namespaces if it is "".
func (c *customWorkloads) all(namespace string, enqueue func(types.NamespacedName)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, in := range c.watched {
		for _, obj := range in.informer.GetIndexer().List() {
			if w, ok := obj.(*workload); ok && (namespace == "" || namespace == w.GetNamespace()) {
				enqueue(keyOf(w.kind, w.GetNamespace(), w.GetName()))
			}
		}
	}
}
