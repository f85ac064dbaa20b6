package altershield

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
)

// WatchConfigured returns a function that reports whether a server is configured,
// and calls changed whenever that changes. An invalid ConfigMap counts as
// configured: a release then waits until it is corrected, at most submit-timeout, as for an
// unreachable server; then no-verdict decides.
func WatchConfigured(ctx context.Context, cmw configmap.Watcher, changed func()) func() bool {
	var configured atomic.Bool
	observe := func(cm *corev1.ConfigMap) {
		c, found := parseConfigMap(cm)
		if len(found) > 0 {
			logging.FromContext(ctx).Errorw("Invalid configuration of the server", "configmap", ConfigMapName, "error", found.join())
		}
		now := c.Configured() || len(found) > 0
		if configured.Swap(now) != now {
			changed()
		}
	}
	optionalconfig.Watch(cmw, ConfigMapName, observe)
	return configured.Load
}

// WatchQPS calls changed with the rate limit of the server, and whenever that changes.
// An invalid ConfigMap leaves it unchanged.
func WatchQPS(cmw configmap.Watcher, changed func(qps float32)) {
	optionalconfig.Watch(cmw, ConfigMapName, func(cm *corev1.ConfigMap) {
		if c, found := parseConfigMap(cm); len(found) == 0 {
			changed(c.QPS)
		}
	})
}
