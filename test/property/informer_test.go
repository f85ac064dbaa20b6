package property

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// informer is a SharedIndexInformer whose cache changes only by apply and add.
type informer struct {
	cache.SharedIndexInformer // nil; its other methods are not used
	resource                  string
	indexer                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
	// kind is the kind of a workload, which the cache holds as workload.Workload.
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

// apply applies one write to the cache.
func (i *informer) apply(w write) error {
	if w.after == nil {
		return i.indexer.Delete(w.before)
	}
	return i.add(w.after)
}

// add adds an object to the cache.
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
