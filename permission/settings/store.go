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

// Store holds the settings in force. One that is wrong does not take the place
// of one that was right: a slip of the pen must not stop pods from starting.
type Store struct{ current atomic.Pointer[Settings] }

// NewStore returns a Store with the defaults.
func NewStore() *Store {
	s := &Store{}
	d := Default()
	s.current.Store(&d)
	return s
}

// Get returns the settings in force.
func (s *Store) Get() Settings { return *s.current.Load() }

// Update takes the settings from the ConfigMap; nil means that there is none.
func (s *Store) Update(ctx context.Context, cm *corev1.ConfigMap) {
	var data map[string]string
	if cm != nil {
		data = cm.Data
	}
	next, err := Parse(data)
	if err != nil {
		logging.FromContext(ctx).Errorw("the settings were left as they were: config-permission is wrong", "error", err)
		return
	}
	s.current.Store(&next)
}

// Follow has the store follow ConfigMap config-permission, which need not exist.
func (s *Store) Follow(ctx context.Context, cmw configmap.Watcher) {
	optionalconfig.Follow(cmw, podmeta.ConfigName, func(cm *corev1.ConfigMap) { s.Update(ctx, cm) })
}
