package altershield

import (
	"context"
	"errors"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/system"
)

// WatchConfigured returns a function that says whether a server is configured
// now, and calls changed when that turns. A ConfigMap that is missing or does
// not parse means that none is: the reason is logged, and the release goes on
// by the no-verdict policy. The token does not count: who only watches may not
// read it, and who calls the server tells when it is missing.
func WatchConfigured(ctx context.Context, cmw configmap.Watcher, changed func()) func() bool {
	var configured atomic.Bool
	observe := func(cm *corev1.ConfigMap) {
		cfg, errs := parseConfigMap(cm)
		err := errors.Join(errs...)
		if err != nil {
			logging.FromContext(ctx).Errorw("no server is used", "configmap", ConfigMapName, "error", err)
		}
		now := err == nil && cfg.Configured()
		if configured.Swap(now) != now {
			changed()
		}
	}
	if d, ok := cmw.(configmap.DefaultingWatcher); ok {
		// The ConfigMap need not be there: a process that dies for want of it
		// would judge nothing at all.
		d.WatchWithDefault(corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: ConfigMapName, Namespace: system.Namespace()},
		}, observe)
	} else {
		cmw.Watch(ConfigMapName, observe)
	}
	return configured.Load
}
