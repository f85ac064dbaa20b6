package workloadkinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/configmap"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

const (
	cloneSet = "- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, revisions: ControllerRevision, pause: spec.updateStrategy.paused}\n"
	rollout  = "- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, revisions: ReplicaSet}\n"
	mistake  = "- {apiVersion: argoproj.io/v1alpha1, kind: Rollout}\n"
)

// configMap returns the ConfigMap as the API server has it; without data, the default that
// the watcher passes for a missing one.
func configMap(data string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: workload.ConfigMapName}}
	if data != "" {
		cm.UID, cm.Data = types.UID("1"), map[string]string{workload.KindsKey: data}
	}
	return cm
}

func TestTheLastGoodStateCountsWhileThereIsAMistake(t *testing.T) {
	const absent = ""
	for name, tc := range map[string]struct {
		// recorded is the Data of the generated webhooks, seen the Data of the ConfigMaps that
		// the watcher passes.
		recorded string
		seen     []string
		want     []string
		wrong    bool
	}{
		"a kind that is named":                              {seen: []string{absent, cloneSet}, want: []string{"CloneSet"}},
		"no ConfigMap":                                      {seen: []string{absent}, recorded: cloneSet},
		"a kind that is removed":                            {seen: []string{absent, cloneSet + rollout, rollout}, want: []string{"Rollout"}},
		"a ConfigMap that is removed":                       {seen: []string{absent, cloneSet, absent}},
		"a mistake":                                         {seen: []string{absent, cloneSet, mistake}, want: []string{"CloneSet"}, wrong: true},
		"a mistake that is corrected":                       {seen: []string{absent, cloneSet, mistake, rollout}, want: []string{"Rollout"}},
		"a mistake in a new one":                            {seen: []string{absent, cloneSet, absent, mistake}, recorded: cloneSet, wrong: true},
		"a restart while there is a mistake":                {recorded: cloneSet, seen: []string{absent, mistake}, want: []string{"CloneSet"}, wrong: true},
		"a restart while there is one and nothing recorded": {seen: []string{absent, mistake}, wrong: true},
		"what is recorded does not read":                    {recorded: mistake, seen: []string{absent, mistake}, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			changes := 0
			s := NewStore(configmap.NewStaticWatcher(configMap(absent)), noop.Meter{},
				func() string { return tc.recorded }, func() { changes++ })
			changes = 0
			for _, data := range tc.seen {
				s.observe(configMap(data))
			}
			state := s.Get()
			var got []string
			for _, k := range state.Kinds[len(workload.BuiltIn()):] {
				got = append(got, k.Kind)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if (state.Err != nil) != tc.wrong {
				t.Errorf("error %v", state.Err)
			}
			if changes != len(tc.seen) {
				t.Errorf("%d changes reported of %d", changes, len(tc.seen))
			}
		})
	}
}
