package settings

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// Store holds the current settings. Invalid settings do not replace valid ones, so
// that a typo does not stop pods from starting.
type Store struct{ current atomic.Pointer[Settings] }

// NewStore returns a Store with the defaults.
func NewStore() *Store {
	s := &Store{}
	d := Default()
	s.current.Store(&d)
	return s
}

// Get returns the current settings.
func (s *Store) Get() Settings { return *s.current.Load() }

// Update reads the settings from the ConfigMap; nil means the defaults.
func (s *Store) Update(ctx context.Context, cm *corev1.ConfigMap) {
	var data map[string]string
	if cm != nil {
		data = cm.Data
	}
	next, err := Parse(data)
	if err != nil {
		logging.FromContext(ctx).Errorw("ConfigMap config-permission is invalid, keeping the current settings", "error", err)
		return
	}
	s.current.Store(&next)
}

// Follow updates the store when ConfigMap config-permission changes. The ConfigMap
// is optional.
func (s *Store) Follow(ctx context.Context, cmw configmap.Watcher) {
	optionalconfig.Watch(cmw, podmeta.ConfigName, func(cm *corev1.ConfigMap) { s.Update(ctx, cm) })
}
