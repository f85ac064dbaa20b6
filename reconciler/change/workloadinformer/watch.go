// Package workloadinformer watches workloads of every kind, those that are built in and
// those that ConfigMap config-workloads names, in one cache of
// *workload.Workload.
//
// The list is followed while the process runs: a kind that is added is watched
// as soon as the API server has it, one that is taken out is not watched any
// more. Whoever is interested adds a handler once and is told of all kinds.
package workloadinformer

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// look is how often the API server is asked which of the kinds that are not
// built in it has: one call each, at most 16.
const look = 15 * time.Second

// Watch is the cache. It is one informer to its process: it is synced when the
// built-in kinds are.
type Watch struct {
	client dynamic.Interface
	// served says whether the API server has a kind.
	served func(workload.Kind) (bool, error)
	// resync is how often every object is told of again.
	resync time.Duration
	// look is how often served is asked.
	look   time.Duration
	logger *zap.SugaredLogger
	// tell writes an Event on config-workloads.
	tell func(reason, message string)
	// watching says of each kind whether it is watched (1) or not (0).
	watching metric.Int64Gauge
	// rejected counts configurations that could not be understood.
	rejected metric.Int64Counter

	// missing are kinds of which it was told that they are not there. Only Run
	// uses it.
	missing map[schema.GroupKind]bool
	// news wakes Run when wanted has changed.
	news chan struct{}
	mu   sync.RWMutex
	// wanted are the kinds of the last good configuration.
	wanted   []workload.Kind
	watched  map[schema.GroupKind]*watched
	handlers []cache.ResourceEventHandler
}

// watched is a kind that is watched.
type watched struct {
	kind     workload.Kind
	informer cache.SharedIndexInformer
	// stop ends the informer; nil before it was started.
	stop context.CancelFunc
}

// Handle tells h of every workload of every kind, also of those that are
// watched later. Its objects are *workload.Workload. A kind that is not watched
// any more is not told of as deleted: its workloads go on to exist.
func (w *Watch) Handle(h cache.ResourceEventHandler) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	h = cache.FilteringResourceEventHandler{FilterFunc: isWorkload, Handler: h}
	w.handlers = append(w.handlers, h)
	for _, k := range w.watched {
		if _, err := k.informer.AddEventHandler(h); err != nil {
			return err
		}
	}
	return nil
}

// HasSynced says whether all workloads of the built-in kinds are in the cache.
func (w *Watch) HasSynced() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, k := range workload.BuiltIn() {
		if in := w.watched[k.GroupKind()]; in == nil || !in.informer.HasSynced() {
			return false
		}
	}
	return true
}

// Run watches until stop is closed.
func (w *Watch) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(w.look)
	defer ticker.Stop()
	for {
		w.converge(ctx, &running)
		select {
		case <-stop:
			cancel()
			return
		case <-w.news:
		case <-ticker.C:
		}
	}
}

// converge starts and stops informers, so that what is watched is what is
// wanted and there.
func (w *Watch) converge(ctx context.Context, running *sync.WaitGroup) {
	w.mu.RLock()
	wanted := slices.Clone(w.wanted)
	w.mu.RUnlock()
	there := map[schema.GroupKind]workload.Kind{}
	for _, k := range wanted {
		ok, err := w.there(k)
		if err != nil {
			w.logger.Warnw("ask the API server for a kind of workload", "kind", k.String(), "error", err)
			ok = w.watches(k) // leave it as it is
		}
		if ok {
			there[k.GroupKind()] = k
		}
		w.watching.Record(ctx, int64(count(ok)), metric.WithAttributes(attribute.String("kind", k.GroupKind().String())))
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	for gk, old := range w.watched {
		if k, ok := there[gk]; !ok || !reflect.DeepEqual(k, old.kind) {
			w.logger.Infow("a kind of workload is not watched any more", "kind", gk.String())
			old.stop()
			delete(w.watched, gk)
		}
	}
	for gk, k := range there {
		if w.watched[gk] == nil {
			if err := w.add(k); err != nil {
				w.logger.Errorw("watch a kind of workload", "kind", gk.String(), "error", err)
				continue
			}
		}
		if in := w.watched[gk]; in.stop == nil {
			w.logger.Infow("a kind of workload is watched", "kind", k.String())
			var informing context.Context
			informing, in.stop = context.WithCancel(ctx)
			running.Go(func() { in.informer.RunWithContext(informing) })
		}
	}
}

// there says whether the API server has a kind, and tells when that changes to no.
func (w *Watch) there(k workload.Kind) (bool, error) {
	if slices.ContainsFunc(workload.BuiltIn(), func(b workload.Kind) bool { return b.GroupKind() == k.GroupKind() }) {
		return true, nil
	}
	ok, err := w.served(k)
	if err != nil {
		return false, err
	}
	if !ok && !w.missing[k.GroupKind()] {
		w.tell(ReasonKindMissing, "the API server has no "+k.GroupVersionResource().String()+
			" of kind "+k.Kind+": they are guarded when their CRD is there")
	}
	w.missing[k.GroupKind()] = !ok
	return ok, nil
}

func (w *Watch) watches(k workload.Kind) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.watched[k.GroupKind()] != nil
}

// add makes the informer of a kind, with all handlers. The lock is held.
func (w *Watch) add(k workload.Kind) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, k.GroupVersionResource(), "", w.resync,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
	if err := informer.SetTransform(w.transform(k)); err != nil {
		return err
	}
	if err := informer.SetWatchErrorHandlerWithContext(w.onError(k)); err != nil {
		return err
	}
	for _, h := range w.handlers {
		if _, err := informer.AddEventHandler(h); err != nil {
			return err
		}
	}
	w.watched[k.GroupKind()] = &watched{kind: k, informer: informer}
	return nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
