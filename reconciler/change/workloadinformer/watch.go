// Package workloadinformer watches workloads of the built-in kinds and of those
// in ConfigMap config-workloads, in one cache of *workload.Workload.
//
// It follows the list while the process runs: an added kind is watched as soon
// as the API server has it, a removed one is no longer watched. A handler is
// added once and receives all kinds.
package workloadinformer

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// discoveryInterval is how often the API server is asked which of the configured kinds it has.
// Each kind needs one request; there are at most 16 kinds.
const discoveryInterval = 15 * time.Second

// Watch is the cache. To its process it is one informer, which is synced when
// the built-in kinds are, except optional ones.
type Watch struct {
	client dynamic.Interface
	// served reports whether the API server has a kind.
	served func(workload.Kind) (bool, error)
	// resync is the resync period of the informers.
	resync time.Duration
	// discoveryInterval is the interval of calling served.
	discoveryInterval time.Duration
	logger            *zap.SugaredLogger
	// event records an Event on config-workloads.
	event func(reason, message string)
	// watching is 1 for each kind that is watched, else 0.
	watching metrics.Gauge
	// rejected counts invalid configurations.
	rejected metrics.Counter

	// missing are the kinds that were reported as missing. Only Run uses it.
	missing map[schema.GroupKind]bool
	// changed wakes Run when wanted has changed.
	changed chan struct{}
	mu      sync.RWMutex
	// wanted are the kinds of the last valid configuration.
	wanted   []workload.Kind
	watched  map[schema.GroupKind]*watched
	handlers []cache.ResourceEventHandler
}

// watched is a kind that is watched.
type watched struct {
	kind     workload.Kind
	informer cache.SharedIndexInformer
	// stop ends the informer; nil before it is started.
	stop context.CancelFunc
}

// Handle adds a handler for workloads of every kind, including kinds that are
// watched later. Objects are *workload.Workload. When a kind is no longer
// watched, h gets no deletions, because the workloads still exist.
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

// HasSynced reports whether the informers of the built-in kinds are synced.
func (w *Watch) HasSynced() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, k := range workload.BuiltIn() {
		if k.Optional {
			continue
		}
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
	ticker := time.NewTicker(w.discoveryInterval)
	defer ticker.Stop()
	for {
		w.converge(ctx, &running)
		select {
		case <-stop:
			cancel()
			return
		case <-w.changed:
		case <-ticker.C:
		}
	}
}

// converge starts and stops informers so that exactly the wanted kinds that the
// API server has are watched.
func (w *Watch) converge(ctx context.Context, running *sync.WaitGroup) {
	w.mu.RLock()
	wanted := slices.Clone(w.wanted)
	w.mu.RUnlock()
	available := map[schema.GroupKind]workload.Kind{}
	for _, k := range wanted {
		ok, err := w.exists(k)
		if err != nil {
			w.logger.Warnw("ask the API server for a kind of workload", "kind", k.String(), "error", err)
			ok = w.watches(k) // leave it as it is
		}
		if ok {
			available[k.GroupKind()] = k
		}
		if ok || !k.Optional {
			w.watching.Record(ctx, metrics.Bool(ok), k.GroupKind().String())
		}
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	for gk, old := range w.watched {
		if k, ok := available[gk]; !ok || !reflect.DeepEqual(k, old.kind) {
			w.logger.Infow("stopped watching a kind of workload", "kind", gk.String())
			old.stop()
			delete(w.watched, gk)
		}
	}
	for gk, k := range available {
		if w.watched[gk] == nil {
			if err := w.add(k); err != nil {
				w.logger.Errorw("watch a kind of workload", "kind", gk.String(), "error", err)
				continue
			}
		}
		if in := w.watched[gk]; in.stop == nil {
			w.logger.Infow("started watching a kind of workload", "kind", k.String())
			var informing context.Context
			informing, in.stop = context.WithCancel(ctx)
			running.Go(func() { in.informer.RunWithContext(informing) })
		}
	}
}

// exists reports whether the API server has a kind, and records an Event when
// it becomes missing. An optional kind may be missing.
func (w *Watch) exists(k workload.Kind) (bool, error) {
	if k.IsBuiltIn() && !k.Optional {
		return true, nil
	}
	ok, err := w.served(k)
	if err != nil {
		return false, err
	}
	if k.Optional {
		return ok, nil
	}
	if !ok && !w.missing[k.GroupKind()] {
		w.event(ReasonKindMissing, "the API server has no "+k.GroupVersionResource().String()+
			" of kind "+k.Kind+": its workloads are judged when the CRD is installed")
	}
	w.missing[k.GroupKind()] = !ok
	return ok, nil
}

func (w *Watch) watches(k workload.Kind) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.watched[k.GroupKind()] != nil
}

// add creates the informer of a kind with all handlers. The caller holds the
// lock.
func (w *Watch) add(k workload.Kind) error {
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, k.GroupVersionResource(), "", w.resync,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byKnativeService: knativeServiceOf}, nil).Informer()
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
