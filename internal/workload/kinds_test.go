package workload_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestKindsOfTheConfigMapAreAdded(t *testing.T) {
	kinds, err := workload.Kinds(map[string]string{workload.KindsKey: `
- apiVersion: apps.kruise.io/v1alpha1
  kind: CloneSet
  revisions: ControllerRevision
  pause: spec.updateStrategy.paused
- {apiVersion: argoproj.io/v1alpha1, kind: Rollout, resource: rollouts, revisions: ReplicaSet}
- {apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, revisions: ControllerRevision, pause: spec.updateStrategy.rollingUpdate.paused}
`})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, k := range kinds {
		got = append(got, k.GroupVersionResource().String()+" "+strings.Join(k.PauseField.Path, "."))
	}
	want := []string{
		"apps/v1, Resource=deployments spec.paused",
		"apps/v1, Resource=statefulsets spec.updateStrategy.rollingUpdate.partition",
		"apps/v1, Resource=daemonsets spec.updateStrategy.type",
		"serving.knative.dev/v1, Resource=services ",
		"apps.kruise.io/v1alpha1, Resource=clonesets spec.updateStrategy.paused",
		"argoproj.io/v1alpha1, Resource=rollouts spec.paused",
		"apps.kruise.io/v1beta1, Resource=statefulsets spec.updateStrategy.rollingUpdate.paused",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// The error names the entry and the field, and the built-in kinds are returned.
func TestAnInvalidListOfKindsIsAnError(t *testing.T) {
	for _, tc := range []struct{ yaml, field string }{
		{`- {apiVersion: v1alpha1, kind: CloneSet, revisions: ReplicaSet}`, "kinds[0].apiVersion"},
		{`- {apiVersion: apps/v1, kind: ReplicaSet, revisions: ControllerRevision}`, "kinds[0].apiVersion"},
		{`- {apiVersion: a.k8s.io/v1, kind: CloneSet, revisions: ReplicaSet}`, "kinds[0].apiVersion"},
		{`- {apiVersion: a.b/v1, kind: "", revisions: ReplicaSet}`, "kinds[0].kind"},
		{`- {apiVersion: a.b/v1, kind: cloneset, revisions: ReplicaSet}`, "kinds[0].kind"},
		{`- {apiVersion: a.b/v1, kind: CloneSet, resource: "Clone Sets", revisions: ReplicaSet}`, "kinds[0].resource"},
		{`- {apiVersion: a.b/v1, kind: CloneSet}`, "kinds[0].revisions"},
		{`- {apiVersion: a.b/v1, kind: CloneSet, revisions: ReplicaSet, pause: status.paused}`, "kinds[0].pause"},
		{`- {apiVersion: a.b/v1, kind: CloneSet, revisions: ReplicaSet, pause: spec..paused}`, "kinds[0].pause"},
		{`- {apiVersion: a.b/v1, kind: CloneSet, revisions: ReplicaSet, pause: "spec.a'] || [?'b"}`, "kinds[0].pause"},
		{`- {apiVersion: apps/v1, kind: Deployment, revisions: ReplicaSet}`, "kinds[0].kind"},
		{`- {apiVersion: apps/v1beta2, kind: StatefulSet, revisions: ControllerRevision}`, "kinds[0].kind"},
		{"- {apiVersion: a.b/v1, kind: CloneSet, revisions: ReplicaSet}\n- {apiVersion: a.b/v2, kind: Cloneset, revisions: ReplicaSet}", "kinds[1].kind"},
		{`- {apiVersion: a.b/v1, kind: CloneSet, revisions: ReplicaSet, paused: true}`, "unknown field"},
		{`kinds`, "kinds: "},
		{strings.Repeat("- {}\n", 17), "at most 16"},
	} {
		kinds, err := workload.Kinds(map[string]string{workload.KindsKey: tc.yaml})
		if err == nil || !strings.Contains(err.Error(), tc.field) {
			t.Errorf("%s: error %v", tc.yaml, err)
		}
		if len(kinds) != 4 {
			t.Errorf("%s: %d kinds", tc.yaml, len(kinds))
		}
	}
}

func TestWhichKindsUpdatePodsInPlace(t *testing.T) {
	of := func(group, kind string, revisions workload.Revisions) workload.Kind {
		return workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Revisions: revisions}
	}
	for name, tc := range map[string]struct {
		kind workload.Kind
		want bool
	}{
		"Deployment":                {workload.Deployment, false},
		"StatefulSet":               {workload.StatefulSet, false},
		"DaemonSet":                 {workload.DaemonSet, false},
		"Knative Service":           {workload.KnativeService, false},
		"CloneSet":                  {of("apps.kruise.io", "CloneSet", workload.ControllerRevisions), true},
		"StatefulSet of OpenKruise": {of("apps.kruise.io", "StatefulSet", workload.ControllerRevisions), true},
		"Rollout":                   {of("argoproj.io", "Rollout", workload.ReplicaSets), false},
	} {
		if got := tc.kind.UpdatesInPlace(); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
