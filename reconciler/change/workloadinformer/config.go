package workloadinformer

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/configmap"

	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Reasons of Events on config-workloads.
const (
	// ReasonKindsInvalid: the list does not read; the one before it counts.
	ReasonKindsInvalid = "KindsInvalid"
	// ReasonKindMissing: the API server does not have a kind.
	ReasonKindMissing = "KindMissing"
	// ReasonKindForbidden: the controller may not watch a kind.
	ReasonKindForbidden = "KindForbidden"
)

// Follow has the watch follow config-workloads. Without one, or until one that
// reads is there, the built-in kinds are watched.
func (w *Watch) Follow(cmw configmap.Watcher) {
	optionalconfig.Follow(cmw, workload.ConfigMapName, w.observe)
}

func (w *Watch) observe(cm *corev1.ConfigMap) {
	wanted, err := workload.Kinds(cm.Data)
	if err != nil {
		w.rejected.Add(context.Background(), 1)
		w.logger.Errorw("config-workloads does not read, so the kinds before it go on to count", "error", err)
		w.tell(ReasonKindsInvalid, err.Error()+" (the list before this one goes on to count)")
		return
	}
	w.mu.Lock()
	w.wanted = wanted
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default: // Run is to look already
	}
}

// onError logs, and tells people when the API server refuses: a kind that is
// named and not permitted would else never be guarded, in silence.
func (w *Watch) onError(k workload.Kind) cache.WatchErrorHandlerWithContext {
	var once sync.Once
	return func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if !apierrs.IsForbidden(err) {
			return
		}
		once.Do(func() {
			w.logger.Errorw("a kind of workload cannot be watched", "kind", k.String(), "error", err)
			w.tell(ReasonKindForbidden, err.Error()+": add a ClusterRole with the label breakwater.dev/controller=true, see docs/change/workloads.md")
		})
	}
}
