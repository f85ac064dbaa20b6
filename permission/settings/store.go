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
// that a typo does not stop pods from starting. Nor does the deletion of the ConfigMap: the default
// cluster may be the name of another one.
type Store struct {
	current atomic.Pointer[Settings]
	// read is whether a valid ConfigMap was read. Only Update uses it.
	read bool
}

// NewStore returns a Store with the defaults.
func NewStore() *Store {
	s := &Store{}
	d := Default()
	s.current.Store(&d)
	return s
}

// Get returns the current settings.
func (s *Store) Get() Settings { return *s.current.Load() }

// Update reads the settings from the ConfigMap. nil, or one without UID, means that there is none; before
// a real one is read, the defaults apply. The watcher calls it sequentially, and first with a ConfigMap
// without UID: the real one may follow.
//
// If the first real ConfigMap is invalid, the process ends: with the default settings it would
// request grants for another cluster.
func (s *Store) Update(ctx context.Context, cm *corev1.ConfigMap) {
	logger := logging.FromContext(ctx)
	exists := cm != nil && cm.UID != ""
	if s.read && !exists {
		logger.Errorw("ConfigMap config-permission was deleted, keeping its last settings: create it again before a process restarts")
		s.keep()
		return
	}
	var data map[string]string
	if cm != nil {
		data = cm.Data
	}
	next, unknown, err := Parse(data)
	if err != nil && !s.read {
		logger.Fatalw("ConfigMap config-permission is invalid, so this process ends: correct the settings that the error names", "error", err)
	}
	if err != nil {
		logger.Errorw("ConfigMap config-permission is invalid, keeping the current settings", "error", err)
		s.keep()
		return
	}
	if len(unknown) > 0 {
		logger.Errorw("ConfigMap config-permission has unknown settings, which have no effect: correct their names (CHANGELOG.md names renamed ones) or remove them", "unknown", unknown)
	}
	s.read = s.read || exists
	s.current.Store(&next)
}

// keep keeps the current settings without announced addresses: the change may have been meant to switch them off.
func (s *Store) keep() {
	next := s.Get()
	next.AnnouncedAddress = AnnouncedAddress{}
	s.current.Store(&next)
}

// Follow updates the store when ConfigMap config-permission changes. The ConfigMap
// is optional.
func (s *Store) Follow(ctx context.Context, cmw configmap.Watcher) {
	optionalconfig.Watch(cmw, podmeta.ConfigName, func(cm *corev1.ConfigMap) { s.Update(ctx, cm) })
}
