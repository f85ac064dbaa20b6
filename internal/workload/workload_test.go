package workload_test

import (
	"encoding/json"
	"fmt"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// clone is an added kind that is held by a field whose parent may be absent.
var clone = workload.Kind{
	GroupVersionKind: workload.Deployment.GroupVersion().WithKind("CloneSet"),
	Resource:         "clonesets", Counts: workload.CountReplicas, Revisions: workload.ControllerRevisions,
	PauseField: workload.Field{Path: []string{"spec", "updateStrategy", "paused"}, Paused: true},
}

func TestReplicasAndProgressFollowTheStatus(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		kind                 workload.Kind
		json                 string
		replicas             int32
		inProgress, complete bool
	}{
		{"a complete Deployment", workload.Deployment,
			`{"metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"availableReplicas":3}}`, 3, false, true},
		{"a Deployment that its controller has not observed", workload.Deployment,
			`{"metadata":{"generation":3},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"availableReplicas":3}}`, 3, true, false},
		{"a Deployment with a remaining old pod", workload.Deployment,
			`{"spec":{"replicas":3},"status":{"replicas":4,"updatedReplicas":3,"availableReplicas":4}}`, 3, true, false},
		{"a Deployment whose last pod is not available", workload.Deployment,
			`{"spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":3,"availableReplicas":2}}`, 3, false, false},
		{"one replica is the default", workload.Deployment, `{"status":{"replicas":1,"updatedReplicas":1,"availableReplicas":1}}`, 1, false, true},
		{"a StatefulSet in progress", workload.StatefulSet,
			`{"spec":{"replicas":3},"status":{"replicas":3,"updatedReplicas":1,"availableReplicas":3}}`, 3, true, false},
		{"a complete DaemonSet", workload.DaemonSet,
			`{"status":{"desiredNumberScheduled":2,"currentNumberScheduled":2,"updatedNumberScheduled":2,"numberAvailable":2}}`, 2, false, true},
		{"a DaemonSet in progress", workload.DaemonSet,
			`{"status":{"desiredNumberScheduled":2,"currentNumberScheduled":2,"updatedNumberScheduled":1,"numberAvailable":2}}`, 2, true, false},
		{"a generation that is a string, as in Argo", clone,
			`{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":"2","replicas":1,"updatedReplicas":1,"availableReplicas":1}}`, 1, false, true},
		{"a promoted Argo Rollout that keeps its old pods for scaleDownDelaySeconds", clone,
			`{"spec":{"replicas":2},"status":{"stableRS":"b","currentPodHash":"b","replicas":4,"updatedReplicas":2,"availableReplicas":2}}`, 2, false, true},
		{"a promoted canary whose old pods count as available", clone,
			`{"spec":{"replicas":2},"status":{"stableRS":"b","currentPodHash":"b","replicas":4,"updatedReplicas":2,"HPAReplicas":4,"availableReplicas":4}}`, 2, false, true},
		{"a promoted canary whose new pods crash", clone,
			`{"spec":{"replicas":2},"status":{"stableRS":"b","currentPodHash":"b","replicas":4,"updatedReplicas":2,"HPAReplicas":4,"availableReplicas":2}}`, 2, false, false},
		{"a blue-green Rollout that returns to the stable version before its traffic does", clone,
			`{"spec":{"replicas":2},"status":{"stableRS":"b","currentPodHash":"b","blueGreen":{"activeSelector":"c"},"replicas":4,"updatedReplicas":2,"HPAReplicas":2,"availableReplicas":2}}`, 2, true, false},
		{"a promoted Argo Rollout that scales up", clone,
			`{"spec":{"replicas":3},"status":{"stableRS":"b","currentPodHash":"b","replicas":4,"updatedReplicas":2,"availableReplicas":2}}`, 3, true, false},
		{"an Argo Rollout before its promotion, or aborted", clone,
			`{"spec":{"replicas":2},"status":{"stableRS":"a","currentPodHash":"b","replicas":4,"updatedReplicas":2,"availableReplicas":2}}`, 2, true, false},
		{"an Argo Rollout whose controller has not written the hashes", clone,
			`{"spec":{"replicas":2},"status":{"stableRS":"","currentPodHash":"","replicas":4,"updatedReplicas":2,"availableReplicas":2}}`, 2, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := read(t, tc.kind, tc.json)
			if w.Replicas != tc.replicas || w.InProgress != tc.inProgress || w.Complete != tc.complete {
				t.Errorf("replicas %d, in progress %v, complete %v", w.Replicas, w.InProgress, w.Complete)
			}
		})
	}
}

func TestAPausedWorkloadHasNoReplicaSetOfItsTemplateIfNoPodIsUpdated(t *testing.T) {
	rollout := workload.Kind{GroupVersionKind: workload.Deployment.GroupVersionKind, Counts: workload.CountReplicas,
		Revisions: workload.ReplicaSets, PauseField: workload.Deployment.PauseField}
	const paused = `{"metadata":{"generation":2},"spec":{"replicas":3,"paused":true},"status":`
	for name, tc := range map[string]struct {
		kind workload.Kind
		json string
		want bool
	}{
		"paused before the rollout began": {workload.Deployment, paused + `{"observedGeneration":2,"replicas":3}}`, true},
		"a custom kind":                   {rollout, paused + `{"observedGeneration":"2","replicas":3}}`, true},
		"paused during a rollout":         {workload.Deployment, paused + `{"observedGeneration":2,"replicas":3,"updatedReplicas":1}}`, false},
		"paused after a rollout":          {workload.Deployment, paused + `{"observedGeneration":2,"replicas":3,"updatedReplicas":3}}`, false},
		"created paused":                  {workload.Deployment, paused + `{"observedGeneration":2}}`, false},
		"not observed":                    {workload.Deployment, paused + `{"observedGeneration":1,"replicas":3}}`, false},
		"not paused":                      {workload.Deployment, `{"spec":{"replicas":3},"status":{"replicas":3}}`, false},
		"a StatefulSet, whose controller creates a revision": {workload.StatefulSet, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2147483647}}},"status":{"replicas":3}}`, false},
		"a DaemonSet, whose controller creates a revision":   {workload.DaemonSet, `{"spec":{"updateStrategy":{"type":"OnDelete"}},"status":{"currentNumberScheduled":3}}`, false},
	} {
		if got := read(t, tc.kind, tc.json).StoppedBeforeReplicaSet(); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestAWorkloadIsStuckIfItsControllerReportsItAndNobodyPausedIt(t *testing.T) {
	const (
		refused  = `{"type":"ReplicaFailure","status":"True","message":"exceeded quota"}`
		timedOut = `{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"web-1 has timed out"}`
	)
	status := func(observed int, conditions string) string {
		return fmt.Sprintf(`"status":{"observedGeneration":%d,"conditions":[%s]}}`, observed, conditions)
	}
	for name, tc := range map[string]struct {
		kind       workload.Kind
		json, want string
	}{
		"the deadline passed":                  {workload.Deployment, `{"metadata":{"generation":2},` + status(2, timedOut), "ProgressDeadlineExceeded: web-1 has timed out"},
		"pods are refused, so it passed":       {workload.Deployment, `{"metadata":{"generation":2},` + status(2, timedOut+","+refused), "ReplicaFailure: exceeded quota"},
		"the deadline of an added kind":        {clone, `{"metadata":{"generation":2},` + status(2, timedOut), "ProgressDeadlineExceeded: web-1 has timed out"},
		"that of the former generation":        {workload.Deployment, `{"metadata":{"generation":2},` + status(1, timedOut), ""},
		"that of the rollout before a pause":   {workload.Deployment, `{"metadata":{"generation":2},"spec":{"paused":true},` + status(2, timedOut), ""},
		"pods were refused before the pause":   {workload.Deployment, `{"metadata":{"generation":2},"spec":{"paused":true},` + status(2, refused), ""},
		"that of an added kind that is paused": {clone, `{"metadata":{"generation":2},"spec":{"updateStrategy":{"paused":true}},` + status(2, timedOut), ""},
		"no conditions":                        {workload.StatefulSet, `{"metadata":{"generation":2},"status":{"observedGeneration":2}}`, ""},
	} {
		if got := read(t, tc.kind, tc.json).Stuck; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Stopping and resuming restores the object, except for a parent of the field
// that had to be created.
func TestResumeUndoesStop(t *testing.T) {
	for _, tc := range []struct {
		name                string
		kind                workload.Kind
		before, held, after string
	}{
		{"Deployment", workload.Deployment, `{"spec":{"replicas":1}}`, `{"spec":{"replicas":1,"paused":true}}`, `{"spec":{"replicas":1}}`},
		{"Deployment paused by a person", workload.Deployment, `{"spec":{"paused":true}}`, `{"spec":{"paused":true}}`, `{"spec":{"paused":true}}`},
		{"StatefulSet", workload.StatefulSet,
			`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}}`,
			`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2147483647}}}}`,
			`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}}}`},
		{"StatefulSet with OnDelete", workload.StatefulSet,
			`{"spec":{"updateStrategy":{"type":"OnDelete"}}}`, `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`, `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`},
		{"DaemonSet", workload.DaemonSet,
			`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1}}}}`,
			`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"maxUnavailable":1}}}}`,
			`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1}}}}`},
		{"a field without its parent", clone, `{"spec":{}}`, `{"spec":{"updateStrategy":{"paused":true}}}`, `{"spec":{"updateStrategy":{}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := read(t, tc.kind, tc.before)
			held := patched(t, tc.before, w.Stop())
			equal(t, tc.held, held)
			equal(t, tc.after, patched(t, held, read(t, tc.kind, held).Resume(w.PauseValue)))
		})
	}
}

func TestEqualTemplatesOfKindsHaveDifferentVersions(t *testing.T) {
	w := read(t, workload.Deployment, `{"spec":{"template":{"metadata":{"labels":{"app":"a"}}}}}`)
	seen := map[string]string{}
	for _, k := range workload.BuiltIn() {
		v, err := workload.Version(k, &w.Template)
		if err != nil || len(v) != 32 {
			t.Fatalf("version %q: %v", v, err)
		}
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s have the same version", k.Kind, other)
		}
		seen[v] = k.Kind
	}
}

func read(t *testing.T, kind workload.Kind, raw string) *workload.Workload {
	t.Helper()
	w, err := workload.Read(kind, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func patched(t *testing.T, raw string, ops []workload.Operation) string {
	t.Helper()
	if len(ops) == 0 {
		return raw
	}
	body, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply([]byte(raw))
	if err != nil {
		t.Fatalf("apply %s: %v", body, err)
	}
	return string(out)
}

func equal(t *testing.T, want, got string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}
