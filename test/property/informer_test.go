//go:build property

package property

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// informer is a SharedIndexInformer whose cache moves when it is told to.
type informer struct {
	cache.SharedIndexInformer // nothing else of it is used
	resource                  string
	indexer                   cache.Indexer
	handlers                  []cache.ResourceEventHandler
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
func (i *informer) handles() []cache.ResourceEventHandler  { return i.handlers }
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
	return i.indexer.Update(copyOf(w.after))
}

func labelsOf(o object) labels.Set { return o.GetLabels() }
