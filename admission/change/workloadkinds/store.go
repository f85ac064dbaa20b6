package workloadkinds

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/configmap"

	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// State is the current set of workload kinds.
type State struct {
	// Data is the list that Kinds were parsed from.
	Data string
	// Kinds are the built-in kinds and the kinds of Data.
	Kinds []workload.Kind
	// Err is the parse error of the current ConfigMap, or nil.
	Err error
	// UID is the UID of the ConfigMap.
	UID types.UID
}

// Store watches ConfigMap config-workloads. While the ConfigMap is invalid, its last
// valid state is used, also after a restart.
type Store struct {
	// recorded returns the Data that the generated webhooks were built from: the last
	// valid state before this process started.
	recorded func() string
	// changed is called after each change.
	changed func()

	current atomic.Pointer[State]
	// lastValid is the last valid state, and seen whether the ConfigMap was read.
	// Only observe uses them, and the watcher calls it sequentially.
	lastValid *State
	seen      bool
}

// NewStore returns a store that watches the ConfigMap once cmw is started. Its metric
// reports an invalid ConfigMap.
func NewStore(cmw configmap.Watcher, meter metric.Meter, recorded func() string, changed func()) *Store {
	s := &Store{recorded: recorded, changed: changed}
	s.current.Store(&State{Kinds: workload.BuiltIn()})
	metrics.Observe(meter, "breakwater_workload_config_invalid", func(observe func(int64, ...string)) {
		observe(metrics.Bool(s.current.Load().Err != nil))
	})
	optionalconfig.Watch(cmw, workload.ConfigMapName, s.observe)
	return s
}

// observe parses a new state of the ConfigMap. The watcher first passes the default for
// a missing ConfigMap. That default does not count as the last valid state: if the
// ConfigMap that follows is invalid, the recorded state must be used.
func (s *Store) observe(cm *corev1.ConfigMap) {
	s.seen = s.seen || cm.UID != ""
	next := &State{Data: cm.Data[workload.KindsKey], UID: cm.UID}
	switch next.Kinds, next.Err = workload.Kinds(cm.Data); {
	case next.Err == nil && s.seen:
		s.lastValid = next
	case next.Err == nil:
		// The ConfigMap was not read yet.
	case s.lastValid != nil:
		next.Data, next.Kinds = s.lastValid.Data, s.lastValid.Kinds
	default:
		next.Data, next.Kinds = "", nil
	}
	s.current.Store(next)
	s.changed()
}

// Get returns the current state.
func (s *Store) Get() State {
	state := *s.current.Load()
	if state.Kinds != nil {
		return state
	}
	state.Data = s.recorded()
	kinds, err := workload.Kinds(map[string]string{workload.KindsKey: state.Data})
	if err != nil {
		state.Data = "" // kinds are the built-in kinds
	}
	state.Kinds = kinds
	return state
}
