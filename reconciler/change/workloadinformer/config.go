package workloadinformer

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/configmap"

	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Reasons of Events on config-workloads.
const (
	// ReasonKindsInvalid: the list is invalid.
	ReasonKindsInvalid = "KindsInvalid"
	// ReasonKindMissing: the API server does not have a kind.
	ReasonKindMissing = "KindMissing"
	// ReasonKindForbidden: the controller may not watch a kind.
	ReasonKindForbidden = "KindForbidden"
)

// Follow makes the watch follow config-workloads. While it is invalid, the kinds of
// the last valid list that this process read are watched; if it read none, only the
// built-in kinds.
func (w *Watch) Follow(cmw configmap.Watcher) {
	optionalconfig.Watch(cmw, workload.ConfigMapName, w.observe)
}

func (w *Watch) observe(cm *corev1.ConfigMap) {
	wanted, err := workload.Kinds(cm.Data)
	if err != nil {
		w.rejected.Add(context.Background(), 1)
		w.logger.Errorw("config-workloads is invalid", "watched", w.watched(), "error", err)
		w.event(ReasonKindsInvalid, err.Error()+" ("+w.watched()+")")
		return
	}
	w.mu.Lock()
	w.wanted = wanted
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default: // Run is already notified
	}
}

// watched says which kinds are watched while the list is invalid.
func (w *Watch) watched() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.ContainsFunc(w.wanted, func(k workload.Kind) bool { return !k.IsBuiltIn() }) {
		return "the controller watches the kinds of the last valid list until it restarts, and then only the built-in kinds"
	}
	return "only the built-in kinds are watched"
}

// onError notes and logs errors of a list or watch, and records an Event if it is forbidden:
// otherwise a configured kind would silently never be judged. The Event is repeated while it is forbidden.
func (w *Watch) onError(k workload.Kind) cache.WatchErrorHandlerWithContext {
	var recorded time.Time
	return func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		if apierrs.IsResourceExpired(err) || apierrs.IsGone(err) {
			return // a new list follows
		}
		now := w.clock.Now()
		w.failed.Store(k.GroupKind(), now)
		if !apierrs.IsForbidden(err) || now.Sub(recorded) < eventrecorder.RepeatAfter {
			return
		}
		recorded = now
		w.logger.Errorw("could not watch a kind of workload", "kind", k.String(), "error", err)
		w.event(ReasonKindForbidden, err.Error()+": add a ClusterRole with the label breakwater.dev/controller=true, see docs/change/workloads.md")
	}
}
