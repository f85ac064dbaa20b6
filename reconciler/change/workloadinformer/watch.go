// Package workloadinformer watches workloads of the built-in kinds and of those
// in ConfigMap config-workloads, in one cache of *workload.Workload.
//
// It follows the list while the process runs: an added kind is watched as soon
// as the API server has it, a removed one is no longer watched. A handler is
// added once and receives all kinds.
package workloadinformer

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/kindwatch"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// failing is the time after an error of a list or watch in which its kind counts as unwatched. client-go
// tries again within a minute.
const failing = 2 * time.Minute

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
	clock             clock.PassiveClock
	logger            *zap.SugaredLogger
	// event records an Event on config-workloads.
	event func(reason, message string)
	// rejected counts invalid configurations.
	rejected metrics.Counter

	kinds kindwatch.Informers[workload.Kind]
	// failed has the time of the last error of the list or watch of a kind, by GroupKind.
	failed sync.Map
	// missing are the kinds that were reported as missing. Only Run uses it.
	missing map[schema.GroupKind]bool
	// changed wakes Run when wanted has changed.
	changed chan struct{}
	mu      sync.Mutex
	// wanted are the kinds of the last valid configuration that this process read, or
	// the built-in kinds.
	wanted []workload.Kind
}

// Handle adds a handler for workloads of every kind, including kinds that are
// watched later. Objects are *workload.Workload. When a kind is no longer
// watched, h gets no deletions, because the workloads still exist.
func (w *Watch) Handle(h cache.ResourceEventHandler) error {
	return w.kinds.Handle(cache.FilteringResourceEventHandler{FilterFunc: isWorkload, Handler: h})
}

// HasSynced reports whether the informers of the built-in kinds are synced.
func (w *Watch) HasSynced() bool {
	for _, k := range workload.BuiltIn() {
		if k.Optional {
			continue
		}
		if in := w.kinds.Get(k.GroupKind()); in == nil || !in.HasSynced() {
			return false
		}
	}
	return true
}

// Run watches until stop is closed.
func (w *Watch) Run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer w.kinds.Wait()
	defer cancel()
	ticker := time.NewTicker(w.discoveryInterval)
	defer ticker.Stop()
	for {
		w.kinds.Converge(ctx, w.available())
		select {
		case <-stop:
			return
		case <-w.changed:
		case <-ticker.C:
		}
	}
}

// available returns the wanted kinds that the API server has.
func (w *Watch) available() map[schema.GroupKind]workload.Kind {
	w.mu.Lock()
	wanted := slices.Clone(w.wanted)
	w.mu.Unlock()
	available := map[schema.GroupKind]workload.Kind{}
	for _, k := range wanted {
		ok, err := w.exists(k)
		if err != nil {
			w.logger.Warnw("could not ask the API server whether it serves a kind of workload", "kind", k.String(), "error", err)
			_, ok = w.kinds.Kind(k.GroupKind()) // leave it as it is
		}
		if ok {
			available[k.GroupKind()] = k
		}
	}
	return available
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

// observeWatched observes for each configured kind whether it is watched. A kind that the
// API server does not have is left out: a CRD may be missing on purpose.
func (w *Watch) observeWatched(observe func(int64, ...string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.wanted {
		if in := w.kinds.Get(k.GroupKind()); in != nil {
			observe(metrics.Bool(in.HasSynced() && !w.isFailing(k)), k.GroupKind().String())
		}
	}
}

// isFailing reports whether the list or watch of a kind fails.
func (w *Watch) isFailing(k workload.Kind) bool {
	at, _ := w.failed.Load(k.GroupKind())
	last, failed := at.(time.Time)
	return failed && w.clock.Since(last) < failing
}

// newInformer returns the informer of a kind.
func (w *Watch) newInformer(k workload.Kind) (cache.SharedIndexInformer, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, k.GroupVersionResource(), "", w.resync,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byKnativeService: knativeServiceOf}, nil).Informer()
	if err := informer.SetTransform(w.transform(k)); err != nil {
		return nil, err
	}
	w.failed.Delete(k.GroupKind())
	return informer, informer.SetWatchErrorHandlerWithContext(w.onError(k))
}
