package altershield

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
)

// WatchConfigured returns a function that says whether a server is configured
// now, and calls changed when that turns. A ConfigMap with mistakes counts as
// configured: somebody wants a judge, so the release waits for the mistake to
// be mended, as it waits for a server that is down, and does not pass as if
// nobody had ever wanted one.
func WatchConfigured(ctx context.Context, cmw configmap.Watcher, changed func()) func() bool {
	var configured atomic.Bool
	observe := func(cm *corev1.ConfigMap) {
		if _, errs := parseConfigMap(cm); len(errs) > 0 {
			logging.FromContext(ctx).Errorw("the server cannot be reached", "configmap", ConfigMapName, "error", errors.Join(errs...))
		}
		now := strings.TrimSpace(cm.Data[keyBaseURL]) != ""
		if configured.Swap(now) != now {
			changed()
		}
	}
	optionalconfig.Watch(cmw, ConfigMapName, observe)
	return configured.Load
}
