package workload_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// advancedStatefulSet is a kind of OpenKruise.
var advancedStatefulSet = workload.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"},
	Revisions:        workload.ControllerRevisions,
	PauseField:       workload.Field{Path: []string{"spec", "updateStrategy", "rollingUpdate", "paused"}, Paused: true},
}

func TestADeletedPodOfAStatefulSetIsCreatedAgainWithTheSameRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		kind      workload.Kind
		partition int64
		revision  string // of pod web-3
		want      bool
	}{
		"current, below the partition":             {workload.StatefulSet, 4, "web-current", true},
		"current, above the partition":             {workload.StatefulSet, 3, "web-current", false},
		"update, below the partition":              {workload.StatefulSet, 4, "web-update", false},
		"update, above the partition":              {workload.StatefulSet, 3, "web-update", true},
		"another":                                  {workload.StatefulSet, 4, "web-another", false},
		"OpenKruise: current, without a partition": {advancedStatefulSet, 0, "web-current", false},
		"OpenKruise: update, without a partition":  {advancedStatefulSet, 0, "web-update", true},
		"OpenKruise: current, above the partition": {advancedStatefulSet, 1, "web-current", true},
		"OpenKruise: update, below the partition":  {advancedStatefulSet, 4, "web-update", true},
		"OpenKruise: another, below the partition": {advancedStatefulSet, 4, "web-another", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := workload.FromUnstructured(tc.kind, &unstructured.Unstructured{Object: map[string]any{
				"spec":   map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": tc.partition}}},
				"status": map[string]any{"currentRevision": "web-current", "updateRevision": "web-update"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-3", Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: tc.revision}}}
			if got := w.RecreatesSameRevision(p); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
