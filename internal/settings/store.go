package settings

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	informer "github.com/breakwater-dev/breakwater/client/informers/externalversions/change/v1alpha1"
)

// Store holds the effective settings. It follows an informer, so a change takes
// effect as soon as the watch delivers it.
type Store struct {
	current atomic.Pointer[Settings]
}

// NewStore returns a store that follows the informer. It holds the defaults
// until the informer has synced. changed, which may be nil, is called after
// each event, even if no setting differs.
func NewStore(in informer.OpsConfigInfoInformer, changed func()) (*Store, error) {
	s := &Store{}
	d := Default()
	s.current.Store(&d)
	lister := in.Lister()
	load := func() {
		objects, err := lister.List(labels.Everything())
		if err != nil {
			return // a lister of an informer's cache returns no error
		}
		next := FromObjects(objects)
		s.current.Store(&next)
		if changed != nil {
			changed()
		}
	}
	_, err := in.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { load() },
		UpdateFunc: func(any, any) { load() },
		DeleteFunc: func(any) { load() },
	})
	if err != nil {
		return nil, fmt.Errorf("follow OpsConfigInfo: %w", err)
	}
	return s, nil
}

// Get returns the effective settings.
func (s *Store) Get() Settings { return *s.current.Load() }
