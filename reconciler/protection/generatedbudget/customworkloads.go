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

// look is how often the API server is asked which of the kinds it has: a call a
// version.
const discoveryInterval = 15 * time.Second

// foreign is the cache of workloads whose kinds are CRDs, which come and go while
// the process runs. A workload of a kind that is not there is not found, and what
// was generated for it stays as it is.
type customWorkloads struct {
	client dynamic.Interface
	// served says whether the API server has a kind in a version.
	served func(schema.GroupVersionResource) (bool, error)
	// changed is told the key of each workload that changes.
	changed func(types.NamespacedName)
	logger  *zap.SugaredLogger

	mu      sync.RWMutex
	watched map[string]*watched
}

// watched is a kind that is watched in a version.
type watched struct {
	version  string
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// run watches until ctx ends.
func (f *customWorkloads) run(ctx context.Context) {
	wait.UntilWithContext(ctx, f.converge, discoveryInterval)
}

// converge starts and stops informers, so that what is watched is what is there.
func (f *customWorkloads) converge(ctx context.Context) {
	for _, k := range customKinds() {
		v, err := f.find(k)
		if err != nil {
			f.logger.Warnw("ask the API server for a kind of workload", "kind", k.id, "error", err)
			continue // leave it as it is
		}
		f.set(ctx, k, v)
	}
}

// find returns the newest version that is served; nil for none.
func (f *customWorkloads) find(k kind) (*version, error) {
	for i := range k.versions {
		ok, err := f.served(schema.GroupVersionResource{Group: k.group, Version: k.versions[i].name, Resource: k.resource})
		if err != nil || ok {
			return &k.versions[i], err
		}
	}
	return nil, nil
}

func (f *customWorkloads) set(ctx context.Context, k kind, v *version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.watched[k.id]
	if now != nil && (v == nil || v.name != now.version) {
		f.logger.Infow("a kind of workload is not watched any more", "kind", k.id, "version", now.version)
		now.stop()
		delete(f.watched, k.id)
		now = nil
	}
	if v == nil || now != nil {
		return
	}
	informer, err := f.informer(k, *v)
	if err != nil {
		f.logger.Errorw("watch a kind of workload", "kind", k.id, "error", err)
		return
	}
	f.logger.Infow("a kind of workload is watched", "kind", k.id, "version", v.name)
	informing, stop := context.WithCancel(ctx)
	f.watched[k.id] = &watched{version: v.name, informer: informer, stop: stop}
	go informer.RunWithContext(informing)
}

func (f *customWorkloads) informer(k kind, v version) (cache.SharedIndexInformer, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(f.client,
		schema.GroupVersionResource{Group: k.group, Version: v.name, Resource: k.resource}, "", 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
	if err := informer.SetTransform(func(obj any) (any, error) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			return k.read(v, u), nil
		}
		return obj, nil // a tombstone, or one that was here before
	}); err != nil {
		return nil, err
	}
	tell := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			f.changed(keyOf(k, name.Namespace, name.Name))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, after any) { tell(after) }, DeleteFunc: tell,
	})
	return informer, err
}

// get returns a workload, or nil.
func (f *customWorkloads) get(k kind, namespace, name string) *workload {
	f.mu.RLock()
	defer f.mu.RUnlock()
	in := f.watched[k.id]
	if in == nil {
		return nil
	}
	obj, _, err := in.informer.GetIndexer().GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil {
		return nil // a store in memory has no error to give
	}
	found, _ := obj.(*workload)
	return found
}

// all tells of the workloads of a namespace, or of all with "".
func (f *customWorkloads) all(namespace string, tell func(types.NamespacedName)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, in := range f.watched {
		for _, obj := range in.informer.GetIndexer().List() {
			if w, ok := obj.(*workload); ok && (namespace == "" || namespace == w.GetNamespace()) {
				tell(keyOf(w.kind, w.GetNamespace(), w.GetName()))
			}
		}
	}
}
