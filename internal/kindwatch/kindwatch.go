// Package kindwatch watches kinds of objects while the API server serves them: CRDs may be
// created and deleted while a process runs. Its callers ask the API server for the kinds.
package kindwatch

import (
	"context"
	"iter"
	"reflect"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// DiscoveryInterval is how often the API server is asked whether it serves a kind: one request
// for each kind and version.
const DiscoveryInterval = 15 * time.Second

// Informers has an informer for each kind that is watched. D describes a kind. If the
// description changes, the informer is replaced.
type Informers[D any] struct {
	// New returns an informer of a kind, which is not started.
	New    func(D) (cache.SharedIndexInformer, error)
	Logger *zap.SugaredLogger

	running  sync.WaitGroup
	mu       sync.RWMutex
	watched  map[schema.GroupKind]watched[D]
	handlers []cache.ResourceEventHandler
}

type watched[D any] struct {
	kind     D
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// Converge starts and stops informers so that exactly the wanted kinds are watched. They also
// end with ctx.
func (s *Informers[D]) Converge(ctx context.Context, wanted map[schema.GroupKind]D) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gk, w := range s.watched {
		if k, ok := wanted[gk]; !ok || !reflect.DeepEqual(k, w.kind) {
			s.Logger.Infow("stopped watching a kind", "kind", gk.String())
			w.stop()
			delete(s.watched, gk)
		}
	}
	for gk, k := range wanted {
		if _, ok := s.watched[gk]; ok {
			continue
		}
		if err := s.start(ctx, gk, k); err != nil {
			s.Logger.Errorw("could not watch a kind", "kind", gk.String(), "error", err)
			continue
		}
		s.Logger.Infow("started watching a kind", "kind", gk.String())
	}
}

// start starts the informer of a kind with all handlers. The caller holds the lock.
func (s *Informers[D]) start(ctx context.Context, gk schema.GroupKind, kind D) error {
	informer, err := s.New(kind)
	if err != nil {
		return err
	}
	for _, h := range s.handlers {
		if _, err := informer.AddEventHandler(h); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	s.put(gk, watched[D]{kind, informer, stop})
	s.running.Go(func() { informer.RunWithContext(ctx) })
	return nil
}

// Put adds an informer that the caller runs and stops. Do not use it together with Converge,
// which stops the informers of kinds that it does not want.
func (s *Informers[D]) Put(gk schema.GroupKind, kind D, informer cache.SharedIndexInformer) {
	s.put(gk, watched[D]{kind: kind, informer: informer})
}

func (s *Informers[D]) put(gk schema.GroupKind, w watched[D]) {
	if s.watched == nil {
		s.watched = map[schema.GroupKind]watched[D]{}
	}
	s.watched[gk] = w
}

// Wait waits until all informers have ended.
func (s *Informers[D]) Wait() { s.running.Wait() }

// Handle adds a handler for objects of every kind, including kinds that are watched later.
// When a kind is no longer watched, h gets no deletions.
func (s *Informers[D]) Handle(h cache.ResourceEventHandler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, h)
	for _, w := range s.watched {
		if _, err := w.informer.AddEventHandler(h); err != nil {
			return err
		}
	}
	return nil
}

// Kind returns the description of a kind; ok is false if the kind is not watched.
func (s *Informers[D]) Kind(gk schema.GroupKind) (kind D, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w, ok := s.watched[gk]
	return w.kind, ok
}

// Get returns the informer of a kind, or nil if the kind is not watched.
func (s *Informers[D]) Get(gk schema.GroupKind) cache.SharedIndexInformer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.watched[gk].informer
}

// Object returns an object, or nil if it is not cached or its kind is not watched.
func (s *Informers[D]) Object(gk schema.GroupKind, namespace, name string) any {
	informer := s.Get(gk)
	if informer == nil {
		return nil
	}
	obj, _, err := informer.GetIndexer().GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil {
		return nil // an in-memory store returns no error
	}
	return obj
}

// All returns the watched kinds with their informers. The loop over them must not call s.
func (s *Informers[D]) All() iter.Seq2[D, cache.SharedIndexInformer] {
	return func(yield func(D, cache.SharedIndexInformer) bool) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		for _, w := range s.watched {
			if !yield(w.kind, w.informer) {
				return
			}
		}
	}
}
