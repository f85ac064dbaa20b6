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

// State is which kinds are in force, and why.
type State struct {
	// Data is the text that Kinds were read from.
	Data string
	// Kinds are those that are built in, and those of Data.
	Kinds []workload.Kind
	// Err says what is wrong with the ConfigMap as it is now; nil: nothing.
	Err error
	// UID is that of the ConfigMap.
	UID types.UID
}

// Store follows ConfigMap config-workloads. While that has a mistake, the last
// good state of it stays in force, also through a restart.
type Store struct {
	// remembered returns the Data of which the webhooks in force were made:
	// what was good before this process knew anything.
	remembered func() string
	// changed is called after each change.
	changed func()

	current atomic.Pointer[State]
	// good is the last good state, and seen whether the ConfigMap was: only
	// observe uses them, which the watcher calls once at a time.
	good *State
	seen bool
}

// NewStore returns a store that follows the ConfigMap once cmw is started, and
// counts its mistakes.
func NewStore(cmw configmap.Watcher, meter metric.Meter, remembered func() string, changed func()) *Store {
	s := &Store{remembered: remembered, changed: changed}
	s.current.Store(&State{Kinds: workload.BuiltIn()})
	metrics.Observe(meter, "breakwater_workload_config_invalid", func(observe func(int64, ...string)) {
		observe(metrics.Bool(s.current.Load().Err != nil))
	})
	optionalconfig.Watch(cmw, workload.ConfigMapName, s.observe)
	return s
}

// observe takes a new state of the ConfigMap. Before the watcher has read
// anything it hands in what a missing one is, which then is no state of it:
// one with a mistake may come next, and what was good before it is remembered.
func (s *Store) observe(cm *corev1.ConfigMap) {
	s.seen = s.seen || cm.UID != ""
	next := &State{Data: cm.Data[workload.KindsKey], UID: cm.UID}
	switch next.Kinds, next.Err = workload.Kinds(cm.Data); {
	case next.Err == nil && s.seen:
		s.good = next
	case next.Err == nil:
		// Nothing was read yet.
	case s.good != nil:
		next.Data, next.Kinds = s.good.Data, s.good.Kinds
	default:
		next.Data, next.Kinds = "", nil
	}
	s.current.Store(next)
	s.changed()
}

// Get returns the state.
func (s *Store) Get() State {
	state := *s.current.Load()
	if state.Kinds != nil {
		return state
	}
	state.Data = s.remembered()
	kinds, err := workload.Kinds(map[string]string{workload.KindsKey: state.Data})
	if err != nil {
		state.Data = "" // kinds are those that are built in
	}
	state.Kinds = kinds
	return state
}
