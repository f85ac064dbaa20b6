package property

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// informer is a SharedIndexInformer whose cache moves when it is told to.
type informer struct {
	cache.SharedIndexInformer // nothing else of it is used
	resource                  string
	indexer                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
	// kind is that of workloads, which the cache holds in a form of their own.
	kind *workload.Kind
}

func newInformer(resource string) *informer {
	return &informer{resource: resource, indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

func (i *informer) GetIndexer() cache.Indexer              { return i.indexer }
func (i *informer) GetStore() cache.Store                  { return i.indexer }
func (i *informer) AddIndexers(more cache.Indexers) error  { return i.indexer.AddIndexers(more) }
func (i *informer) SetTransform(cache.TransformFunc) error { return nil }
func (i *informer) HasSynced() bool                        { return true }
func (i *informer) Informer() cache.SharedIndexInformer    { return i }
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return nil, nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// see takes one write into the cache.
func (i *informer) see(w write) error {
	if w.after == nil {
		return i.indexer.Delete(w.before)
	}
	return i.add(w.after)
}

// add takes an object into the cache.
func (i *informer) add(o object) error {
	if i.kind == nil {
		return i.indexer.Update(copyOf(o))
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: raw}
	u.SetGroupVersionKind(i.kind.GroupVersionKind)
	w, err := workload.FromUnstructured(*i.kind, u)
	if err != nil {
		return err
	}
	return i.indexer.Update(w)
}

func labelsOf(o object) labels.Set { return o.GetLabels() }
