package changeworkload

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

// rolling is a Deployment of attempt 2 during its rollout.
func rolling() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "u", ResourceVersion: "7", Generation: 3,
			Labels:      map[string]string{v1alpha1.VersionKey: "v"},
			Annotations: map[string]string{v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: "2"},
		},
		Spec:   appsv1.DeploymentSpec{Replicas: new(int32(3))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 4, UpdatedReplicas: 2},
	}
}

func attempt(n int64) *v1alpha1.ChangeWorkload {
	return &v1alpha1.ChangeWorkload{Spec: v1alpha1.ChangeWorkloadSpec{Reversion: "v", Attempt: n}}
}

// of returns the Deployment as the reconciler reads it.
func of(t *testing.T, d *appsv1.Deployment) *workload.Workload {
	return workloadinformertest.Workload(t, workload.Deployment, d)
}

// applied returns the Deployment after a patch.
func applied(t *testing.T, d *appsv1.Deployment, patch []byte, err error) (*appsv1.Deployment, error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	raw, err = decoded.Apply(raw)
	if err != nil {
		return nil, err
	}
	var out appsv1.Deployment
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return &out, nil
}

func holdPatch(w *workload.Workload, c *v1alpha1.ChangeWorkload, now time.Time) ([]byte, error) {
	return patchIfUnchanged(w, ActionSuspend, Input{ChangeWorkload: c, Now: now})
}

func resumePatch(w *workload.Workload, c *v1alpha1.ChangeWorkload) ([]byte, error) {
	return patchIfUnchanged(w, ActionResume, Input{ChangeWorkload: c})
}

func TestResumeRestoresEveryValueThatAHoldReplaced(t *testing.T) {
	for name, change := range map[string]func(*appsv1.Deployment){
		"during a rollout":                   func(*appsv1.Deployment) {},
		"after a rollout":                    func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 3, 3 },
		"of a workload that a person paused": func(d *appsv1.Deployment) { d.Spec.Paused = true },
	} {
		t.Run(name, func(t *testing.T) {
			before := rolling()
			change(before)
			patch, err := holdPatch(of(t, before), attempt(2), time.Unix(1700000000, 0))
			held, err := applied(t, before, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			if got := held.Labels[v1alpha1.SuspendLabel]; got != "1700000000" {
				t.Errorf("suspend is %q", got)
			}
			if of(t, before).InProgress && !held.Spec.Paused {
				t.Error("the rollout is not stopped")
			}
			patch, err = resumePatch(of(t, held), attempt(2))
			resumed, err := applied(t, held, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			delete(resumed.Labels, v1alpha1.DefenseStatusLabel) // a resume keeps it
			if diff := cmp.Diff(before, resumed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHoldIsNotAppliedToANewerTemplate(t *testing.T) {
	patch, err := holdPatch(of(t, rolling()), attempt(2), time.Unix(1700000000, 0))
	newer := rolling()
	newer.Annotations[v1alpha1.AttemptAnnotation] = "3"
	if _, err := applied(t, newer, patch, err); err == nil {
		t.Error("the patch was applied")
	}
}

func TestAnEarlierHoldIsNotRecordedAsAPauseByAPerson(t *testing.T) {
	for name, tc := range map[string]struct {
		older  string
		paused bool
		want   any
	}{
		"paused by the earlier hold":                     {`{"attempt":1}`, true, nil},
		"paused by a person before the earlier hold":     {`{"attempt":1,"former":true}`, true, true},
		"paused by a person before it and resumed since": {`{"attempt":1,"former":true}`, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling()
			d.Spec.Paused = tc.paused
			d.Annotations[v1alpha1.HoldAnnotation] = tc.older
			patch, err := holdPatch(of(t, d), attempt(2), time.Unix(1700000000, 0))
			held, err := applied(t, d, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			want := &v1alpha1.Hold{Attempt: 2, Former: tc.want}
			if diff := cmp.Diff(want, v1alpha1.HoldOf(held.Annotations)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHoldOfEveryKindIsUndone(t *testing.T) {
	const partition = `{"type":"RollingUpdate","rollingUpdate":{"partition":2}}`
	for name, tc := range map[string]struct {
		kind                   workload.Kind
		strategy, held, status string
	}{
		"a StatefulSet with a partition set by a person": {workload.StatefulSet, partition,
			`{"type":"RollingUpdate","rollingUpdate":{"partition":2147483647}}`, `{"replicas":3,"updatedReplicas":1}`},
		"a StatefulSet after its rollout": {workload.StatefulSet, partition, partition, `{"replicas":3,"updatedReplicas":3}`},
		"a DaemonSet": {workload.DaemonSet, `{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1}}`,
			`{"type":"OnDelete","rollingUpdate":{"maxUnavailable":1}}`, `{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":1}`},
		"a DaemonSet with OnDelete": {workload.DaemonSet, `{"type":"OnDelete"}`, `{"type":"OnDelete"}`,
			`{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			before := `{"metadata":{"uid":"u","resourceVersion":"7","labels":{"` + v1alpha1.VersionKey + `":"v"},"annotations":{"` + v1alpha1.VersionKey + `":"v","` + v1alpha1.AttemptAnnotation + `":"2"}},` +
				`"spec":{"replicas":3,"updateStrategy":` + tc.strategy + `},"status":` + tc.status + `}`
			patch, err := holdPatch(readWorkload(t, tc.kind, before), attempt(2), time.Unix(1700000000, 0))
			held := patchJSON(t, before, patch, err)
			if diff := cmp.Diff(decode(t, tc.held), decode(t, held)["spec"].(map[string]any)["updateStrategy"]); diff != "" {
				t.Error(diff)
			}
			patch, err = resumePatch(readWorkload(t, tc.kind, held), attempt(2))
			after := decode(t, patchJSON(t, held, patch, err))
			delete(after["metadata"].(map[string]any)["labels"].(map[string]any), v1alpha1.DefenseStatusLabel) // a resume keeps it
			if diff := cmp.Diff(decode(t, before), after); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASuspensionByAPersonOutlivesAHold(t *testing.T) {
	const emptyValue = "the empty value"
	repaired := `{"kind":"repair","suspend":"1700000000","attempt":2,"freeze":"holidays"}`
	for name, tc := range map[string]struct {
		suspend, hold, bypass, recorded, after string
	}{
		"it was not suspended":                              {"", "", "", "", ""},
		"it was suspended":                                  {"holidays", "", "", "holidays", "holidays"},
		"it was suspended with an empty value":              {emptyValue, "", "", "true", "true"},
		"it was suspended, and an earlier attempt was held": {"1700000000", `{"attempt":1,"freeze":"holidays"}`, "", "holidays", "holidays"},
		"it was suspended, and a repair failed, too":        {"1700000000", "", repaired, "holidays", "holidays"},
		"the suspension was of an earlier hold":             {"1700000000", `{"attempt":1}`, "", "", ""},
		"the suspension was to be ended by a repair":        {"1700000000", "", `{"kind":"repair","suspend":"1700000000","attempt":2}`, "", ""},
		"an earlier one with the same value was repaired":   {"holidays", "", `{"kind":"repair","suspend":"holidays","attempt":2,"ended":true}`, "holidays", "holidays"},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling()
			for key, value := range map[string]string{v1alpha1.HoldAnnotation: tc.hold, v1alpha1.BypassAnnotation: tc.bypass} {
				if value != "" {
					d.Annotations[key] = value
				}
			}
			if tc.suspend != "" {
				d.Labels[v1alpha1.SuspendLabel] = strings.TrimPrefix(tc.suspend, emptyValue)
			}
			patch, err := holdPatch(of(t, d), attempt(2), time.Unix(1800000000, 0))
			held, err := applied(t, d, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			if got := v1alpha1.HoldOf(held.Annotations).Freeze; got != tc.recorded {
				t.Errorf("recorded %q", got)
			}
			if got := held.Labels[v1alpha1.SuspendLabel]; got != "1800000000" {
				t.Errorf("suspended since %q", got)
			}
			patch, err = resumePatch(of(t, held), attempt(2))
			resumed, err := applied(t, held, patch, err)
			if err != nil {
				t.Fatal(err)
			}
			if got := resumed.Labels[v1alpha1.SuspendLabel]; got != tc.after {
				t.Errorf("suspended with %q after the resume", got)
			}
		})
	}
}

// A user applies a manifest that pauses the rollout to a held workload.
func TestThePauseOfAManifestOutlivesTheHold(t *testing.T) {
	overruled := []func(*workload.Workload, *v1alpha1.ChangeWorkload) ([]byte, error){
		func(w *workload.Workload, c *v1alpha1.ChangeWorkload) ([]byte, error) {
			return holdPatch(w, c, time.Unix(1700000000, 0))
		}, resumePatch,
	}
	writes := func(minute int, manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
			Time: new(metav1.Date(2026, 11, 28, 12, minute, 0, 0, time.UTC))}
	}
	const lastApplied, pause = `{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`, `{"f:spec":{"f:paused":{}}}`
	manifest := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"paused":true}}`}
	for name, tc := range map[string]struct {
		annotations map[string]string
		entries     []metav1.ManagedFieldsEntry
		want        bool
	}{
		"with kubectl apply":     {manifest, nil, true},
		"with server-side apply": {nil, []metav1.ManagedFieldsEntry{{Manager: "argocd", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{Raw: []byte(pause)}}}, true},
		"without the field":      {map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"replicas":3}}`}, nil, false},
		"with kubectl apply, a minute after the hold": {manifest, []metav1.ManagedFieldsEntry{
			writes(10, holdManager, pause), writes(11, "kubectl-client-side-apply", lastApplied)}, true},
		"before the hold, and resumed the rollout by hand": {manifest, []metav1.ManagedFieldsEntry{
			writes(9, "kubectl-client-side-apply", lastApplied), writes(10, holdManager, pause)}, false},
	} {
		for steps, later := range map[string][]func(*workload.Workload, *v1alpha1.ChangeWorkload) ([]byte, error){
			"a late pass": {resumePatch}, "a fail that is overruled": overruled,
		} {
			t.Run(name+", "+steps, func(t *testing.T) {
				before := rolling()
				patch, err := unjudgedHoldPatch(of(t, before), attempt(2))
				d, err := applied(t, before, patch, err)
				if err != nil {
					t.Fatal(err)
				}
				maps.Copy(d.Annotations, tc.annotations)
				d.ManagedFields = tc.entries
				for _, write := range later {
					patch, err = write(of(t, d), attempt(2))
					if d, err = applied(t, d, patch, err); err != nil {
						t.Fatal(err)
					}
					for i := range d.ManagedFields { // the entry of Breakwater has the time of its last write
						if d.ManagedFields[i].Manager == holdManager {
							d.ManagedFields[i].Time = new(metav1.Date(2026, 11, 28, 12, 12, 0, 0, time.UTC))
						}
					}
				}
				if _, held := d.Annotations[v1alpha1.HoldAnnotation]; held || d.Spec.Paused != tc.want {
					t.Errorf("held %t, paused %t, want %t", held, d.Spec.Paused, tc.want)
				}
			})
		}
	}
}

func TestTheOnDeleteOfAManifestOutlivesTheHold(t *testing.T) {
	held := `{"metadata":{"uid":"u","resourceVersion":"7","labels":{"` + v1alpha1.VersionKey + `":"v"},"annotations":{"` + v1alpha1.VersionKey + `":"v","` + v1alpha1.AttemptAnnotation + `":"2",` +
		`"` + v1alpha1.HoldAnnotation + `":"{\"attempt\":2,\"former\":\"RollingUpdate\",\"unjudged\":true}",` +
		`"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":{\"updateStrategy\":{\"type\":\"OnDelete\"}}}"}},` +
		`"spec":{"updateStrategy":{"type":"OnDelete"}},"status":{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":1}}`
	patch, err := resumePatch(readWorkload(t, workload.DaemonSet, held), attempt(2))
	after := readWorkload(t, workload.DaemonSet, patchJSON(t, held, patch, err))
	if v1alpha1.HoldOf(after.Annotations) != nil || !after.OnDelete {
		t.Errorf("held %v, OnDelete %t", v1alpha1.HoldOf(after.Annotations), after.OnDelete)
	}
}

func unjudgedHoldPatch(w *workload.Workload, c *v1alpha1.ChangeWorkload) ([]byte, error) {
	return patchIfUnchanged(w, ActionHold, Input{ChangeWorkload: c})
}

// A fail may follow, or precede and be overruled: the values of before the first hold are
// restored.
func TestAnUnjudgedHoldKeepsTheSuspendLabelAndIsUndone(t *testing.T) {
	suspendPatch := func(w *workload.Workload, c *v1alpha1.ChangeWorkload) ([]byte, error) {
		return holdPatch(w, c, time.Unix(1700000000, 0))
	}
	type step = func(*workload.Workload, *v1alpha1.ChangeWorkload) ([]byte, error)
	for name, tc := range map[string]struct {
		before func(*appsv1.Deployment)
		steps  []step
	}{
		"of a rollout":                       {func(*appsv1.Deployment) {}, []step{unjudgedHoldPatch}},
		"of a workload that a person paused": {func(d *appsv1.Deployment) { d.Spec.Paused = true }, []step{unjudgedHoldPatch}},
		"of a frozen workload":               {func(d *appsv1.Deployment) { d.Labels[v1alpha1.SuspendLabel] = "holidays" }, []step{unjudgedHoldPatch}},
		"during a repair": {func(d *appsv1.Deployment) {
			d.Labels[v1alpha1.SuspendLabel] = "1600000000"
			d.Annotations[v1alpha1.BypassAnnotation] = `{"kind":"repair","suspend":"1600000000","attempt":2}`
		}, []step{unjudgedHoldPatch}},
		"and then failed":                         {func(*appsv1.Deployment) {}, []step{unjudgedHoldPatch, suspendPatch}},
		"of a frozen workload, and then failed":   {func(d *appsv1.Deployment) { d.Labels[v1alpha1.SuspendLabel] = "holidays" }, []step{unjudgedHoldPatch, suspendPatch}},
		"after a fail that was overruled":         {func(*appsv1.Deployment) {}, []step{suspendPatch, unjudgedHoldPatch}},
		"of a frozen workload, after such a fail": {func(d *appsv1.Deployment) { d.Labels[v1alpha1.SuspendLabel] = "holidays" }, []step{suspendPatch, unjudgedHoldPatch}},
	} {
		t.Run(name, func(t *testing.T) {
			before := rolling()
			tc.before(before)
			current := before
			for i, hold := range append(tc.steps, resumePatch) {
				patch, err := hold(of(t, current), attempt(2))
				next, err := applied(t, current, patch, err)
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if i < len(tc.steps) && !next.Spec.Paused {
					t.Errorf("step %d: the rollout is not held", i)
				}
				current = next
			}
			delete(current.Labels, v1alpha1.DefenseStatusLabel) // a resume keeps it
			if diff := cmp.Diff(before, current); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A person pauses the rollout after its first pod, which then is unjudged: the hold changes nothing. The person ends
// the pause twice.
func TestARolloutWhosePauseByAPersonEndsIsHeldUntilItIsResumedAgain(t *testing.T) {
	d := rolling()
	d.Spec.Paused = true
	decide := func() (Input, Decision) {
		in := release(3, finished(1, 1), judged(1, "done"), starting(2), noVerdict("Hold"), after(100*time.Hour))
		in.Workload = workloadOf(of(t, d), workload.ExcludedNodes{})
		return in, Decide(in)
	}
	for i, step := range []struct {
		resumed bool // by the person, before the decision
		action  Action
		held    corev1.ConditionStatus
		hold    string // the annotation after the action
	}{
		{false, ActionHold, corev1.ConditionTrue, `{"attempt":2,"former":true,"unjudged":true}`},
		{false, ActionNone, corev1.ConditionTrue, `{"attempt":2,"former":true,"unjudged":true}`},
		{true, ActionHold, corev1.ConditionTrue, `{"attempt":2,"unjudged":true}`},
		{false, ActionNone, corev1.ConditionTrue, `{"attempt":2,"unjudged":true}`},
		{true, ActionNone, corev1.ConditionFalse, `{"attempt":2,"unjudged":true}`},
	} {
		if step.resumed {
			d.Spec.Paused = false
		}
		in, decision := decide()
		if decision.Action != step.action {
			t.Fatalf("step %d: action %q, want %q", i, decision.Action, step.action)
		}
		if held := derive(in, decision).Status.GetCondition(v1alpha1.ReleaseHeld); held.Status != step.held {
			t.Errorf("step %d: Held is %+v, want %s", i, held, step.held)
		}
		if decision.Action == ActionHold {
			patch, err := patchIfUnchanged(of(t, d), decision.Action, in)
			if d, err = applied(t, d, patch, err); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.Annotations[v1alpha1.HoldAnnotation]; got != step.hold || d.Spec.Paused == (step.held == corev1.ConditionFalse) {
			t.Errorf("step %d: hold %s, paused %t", i, got, d.Spec.Paused)
		}
	}
}

// The release after a failed one is not a repair if it was admitted while blocking was off. Its success ends the
// suspension, also if its pods were unjudged for some time.
func TestAnUnjudgedHoldDoesNotLoseTheSuspensionOfAnEarlierRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		hold string
		want string // of the suspend label; empty if it is removed
	}{
		"of a rollout":         {`{"attempt":1}`, ""},
		"of a frozen workload": {`{"attempt":1,"freeze":"holidays"}`, "holidays"},
	} {
		t.Run(name, func(t *testing.T) {
			current := rolling()
			current.Labels[v1alpha1.SuspendLabel], current.Annotations[v1alpha1.HoldAnnotation] = "1600000000", tc.hold
			for i, step := range []func(*workload.Workload, *v1alpha1.ChangeWorkload) ([]byte, error){unjudgedHoldPatch, resumePatch} {
				patch, err := step(of(t, current), attempt(2))
				if current, err = applied(t, current, patch, err); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			if got := current.Labels[v1alpha1.SuspendLabel]; got != tc.want || current.Spec.Paused || v1alpha1.HoldOf(current.Annotations) != nil {
				t.Errorf("suspended with %q, want %q; paused %t, annotations %v", got, tc.want, current.Spec.Paused, current.Annotations)
			}
		})
	}
}

func TestASuspensionByAPersonIsRestoredAfterARepair(t *testing.T) {
	d := rolling()
	d.Labels[v1alpha1.SuspendLabel] = "1700000000"
	d.Annotations[v1alpha1.BypassAnnotation] = `{"kind":"repair","suspend":"1700000000","attempt":2,"freeze":"holidays"}`
	patch, err := resumePatch(of(t, d), attempt(2))
	resumed, err := applied(t, d, patch, err)
	if err != nil {
		t.Fatal(err)
	}
	if got := resumed.Labels[v1alpha1.SuspendLabel]; got != "holidays" {
		t.Errorf("suspended with %q", got)
	}
}

// Self-healing rolled a workload back that a person had suspended, and the rollback succeeded.
func TestASuspensionByAPersonOutlivesSelfHealing(t *testing.T) {
	d := rolling()
	d.Labels[v1alpha1.SuspendLabel] = "holidays"
	d.Annotations[v1alpha1.BypassAnnotation] = `{"kind":"rollback","suspend":"holidays","attempt":2,"freeze":"holidays"}`
	in := func() Input {
		return Input{Workload: workloadOf(of(t, d), workload.ExcludedNodes{}), ChangeWorkload: attempt(2)}
	}
	if action := successAction(in()); action != ActionResume {
		t.Fatalf("action %s", action)
	}
	patch, err := resumePatch(of(t, d), attempt(2))
	if d, err = applied(t, d, patch, err); err != nil {
		t.Fatal(err)
	}
	if got := d.Labels[v1alpha1.SuspendLabel]; got != "holidays" {
		t.Errorf("suspended with %q", got)
	}
	if action := successAction(in()); action != ActionNone {
		t.Errorf("action %s after the resume", action)
	}
}

// A person suspends the workload, releases a repair or a rollback, and suspends it again with the same value.
func TestASecondSuspensionByAPersonIsNotEndedByTheRepairOfTheFirst(t *testing.T) {
	for name, actions := range map[string][]Action{
		"the repair succeeded":               {ActionResume},
		"the repair failed and is overruled": {ActionSuspend, ActionResume},
	} {
		for _, kind := range []v1alpha1.BypassKind{v1alpha1.BypassRepair, v1alpha1.BypassRollback} {
			t.Run(fmt.Sprintf("%s, %s", kind, name), func(t *testing.T) {
				d := rolling()
				d.Labels[v1alpha1.SuspendLabel] = "true"
				d.Annotations[v1alpha1.BypassAnnotation] = fmt.Sprintf(`{"kind":%q,"suspend":"true","attempt":2}`, kind)
				for _, action := range actions {
					patch, err := patchIfUnchanged(of(t, d), action, Input{ChangeWorkload: attempt(2), Now: t0})
					if d, err = applied(t, d, patch, err); err != nil {
						t.Fatal(err)
					}
				}
				if got, suspended := d.Labels[v1alpha1.SuspendLabel]; suspended {
					t.Fatalf("suspended with %q", got)
				}
				if got := v1alpha1.IsRollback(d.Annotations); got != (kind == v1alpha1.BypassRollback) {
					t.Errorf("the release is a rollback: %t", got)
				}
				d.Labels[v1alpha1.SuspendLabel] = "true"
				if action := successAction(Input{Workload: workloadOf(of(t, d), workload.ExcludedNodes{}), ChangeWorkload: attempt(2)}); action != ActionNone {
					t.Errorf("action %s", action)
				}
			})
		}
	}
}

func TestTheSuspensionOfARepairThatFailsWithinASecondHasAnotherValue(t *testing.T) {
	d := rolling()
	d.Labels[v1alpha1.SuspendLabel] = "1700000000"
	d.Annotations[v1alpha1.BypassAnnotation] = `{"kind":"repair","suspend":"1700000000","attempt":2}`
	patch, err := holdPatch(of(t, d), attempt(2), time.Unix(1700000000, 5))
	held, err := applied(t, d, patch, err)
	if err != nil {
		t.Fatal(err)
	}
	if got := held.Labels[v1alpha1.SuspendLabel]; got != "1700000001" {
		t.Errorf("suspended with %q", got)
	}
}

// A person removed the bypass annotation while the first repair, attempt 2, runs: the webhook left it with a
// note. Each step reads the object anew, as a controller does that has restarted.
func TestTheSuspensionEndsAsIfTheBypassAnnotationHadNotBeenRemoved(t *testing.T) {
	resume := []Action{ActionResume}
	for name, tc := range map[string]struct {
		freeze  string // what the suspension replaced
		noted   bool   // the bypass annotation was removed
		actions []Action
		kept    bool // the bypass annotation is kept
	}{
		"the repair succeeds":                      {"", true, resume, false},
		"the repair succeeds, it was frozen":       {"holidays", true, resume, false},
		"the repair fails and is overruled":        {"", true, []Action{ActionSuspend, ActionResume}, false},
		"it fails, it was frozen":                  {"holidays", true, []Action{ActionSuspend, ActionResume}, false},
		"the repair is unjudged and then succeeds": {"", true, []Action{ActionHold, ActionResume, ActionResume}, false},
		"it is unjudged, it was frozen":            {"holidays", true, []Action{ActionHold, ActionResume, ActionResume}, false},
		"it is unjudged and then fails":            {"holidays", true, []Action{ActionHold, ActionSuspend, ActionResume}, false},
		"not removed, the repair succeeds":         {"holidays", false, resume, true},
		"not removed, the repair fails":            {"holidays", false, []Action{ActionSuspend, ActionResume}, true},
	} {
		for _, kind := range workload.BuiltIn() {
			t.Run(name+", "+kind.Kind, func(t *testing.T) {
				bypass, traffic := v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, Suspend: "1", Attempt: 2, Freeze: tc.freeze, AnotherRepair: tc.noted}, ""
				if kind.Revisions == workload.KnativeRevisions {
					bypass.Traffic = &v1alpha1.HeldTraffic{Failed: []string{"b"}, To: "a", Former: []map[string]any{{"latestRevision": true, "percent": 100}}}
					traffic = `,"traffic":[{"revisionName":"a","latestRevision":false,"percent":100}]`
				}
				record, err := json.Marshal(bypass)
				if err != nil {
					t.Fatal(err)
				}
				raw := fmt.Sprintf(`{"metadata":{"name":"web","resourceVersion":"1","uid":"u","labels":{%q:"v",%q:"1"},"annotations":{%[1]q:"v",%[3]q:"2",%[4]q:%[5]q}},"spec":{"template":{},"updateStrategy":{}%s}}`,
					v1alpha1.VersionKey, v1alpha1.SuspendLabel, v1alpha1.AttemptAnnotation, v1alpha1.BypassAnnotation, record, traffic)
				for i, action := range tc.actions {
					if traffic != "" && i > 0 {
						checkTraffic(t, []byte(raw), `[{"latestRevision":false,"percent":100,"revisionName":"a"}]`)
					}
					patch, err := patchIfUnchanged(readWorkload(t, kind, raw), action, Input{ChangeWorkload: attempt(2), Now: t0, Revisions: Revisions{Own: []string{"c"}, Good: "a"}})
					raw = patchJSON(t, raw, patch, err)
				}
				after := readWorkload(t, kind, raw)
				if got := after.Labels[v1alpha1.SuspendLabel]; got != tc.freeze {
					t.Errorf("suspended with %q, want %q", got, tc.freeze)
				}
				b := v1alpha1.BypassOf(after.Annotations)
				if (b != nil) != tc.kept || b != nil && !b.Ended || after.Annotations[v1alpha1.HoldAnnotation] != "" {
					t.Errorf("annotations %v", after.Annotations)
				}
				if traffic != "" {
					checkTraffic(t, []byte(raw), `[{"latestRevision":true,"percent":100}]`)
				}
			})
		}
	}
}

func TestAHoldNamesTheVersionOfReplacementPods(t *testing.T) {
	const (
		former   = "; pods that are deleted meanwhile are recreated with the former version"
		newer    = "; pods that are deleted meanwhile are recreated with the new version"
		deleted  = "; Kubernetes deletes the former pods when the new ones are available"
		kruise   = "; pods that are added or recreated meanwhile get the new version, unless your partition keeps the former one"
		rolling  = `{"replicas":3,"updatedReplicas":1,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":1}`
		complete = `{"replicas":3,"updatedReplicas":3,"availableReplicas":3,"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3}`
		crashing = `{"replicas":3,"updatedReplicas":3,"availableReplicas":2}`
		surged   = `{"replicas":5,"updatedReplicas":4,"availableReplicas":1}`
		onDelete = `{"type":"OnDelete"}`
		canary   = `{"type":"RollingUpdate","rollingUpdate":{"partition":2}}`
	)
	ofKruise := func(kind string, pause ...string) workload.Kind {
		return workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: kind},
			Revisions: workload.ControllerRevisions, Counts: workload.CountReplicas, PauseField: workload.Field{Path: pause, Paused: true}}
	}
	for name, tc := range map[string]struct {
		kind             workload.Kind
		strategy, status string
		begins, held     string
	}{
		"Deployment":                             {workload.Deployment, "{}", rolling, "", ""},
		"Deployment, all new pods exist":         {workload.Deployment, "{}", surged, deleted, deleted},
		"Deployment, complete":                   {workload.Deployment, "{}", complete, "", ""},
		"DaemonSet":                              {workload.DaemonSet, "{}", rolling, newer, newer},
		"DaemonSet, complete":                    {workload.DaemonSet, "{}", complete, newer, newer},
		"StatefulSet":                            {workload.StatefulSet, "{}", rolling, former, former},
		"StatefulSet, canary":                    {workload.StatefulSet, canary, rolling, former, former},
		"StatefulSet, complete":                  {workload.StatefulSet, "{}", complete, newer, newer},
		"StatefulSet, complete, a pod crashes":   {workload.StatefulSet, "{}", crashing, former, newer},
		"CloneSet":                               {ofKruise("CloneSet", "spec", "updateStrategy", "paused"), "{}", rolling, kruise, kruise},
		"CloneSet, complete":                     {ofKruise("CloneSet", "spec", "updateStrategy", "paused"), "{}", complete, kruise, kruise},
		"StatefulSet of OpenKruise":              {ofKruise("StatefulSet", "spec", "updateStrategy", "rollingUpdate", "paused"), "{}", rolling, kruise, kruise},
		"StatefulSet, OnDelete":                  {workload.StatefulSet, onDelete, rolling, former, newer},
		"StatefulSet, OnDelete with a partition": {workload.StatefulSet, `{"type":"OnDelete","rollingUpdate":{"partition":2}}`, rolling, former, newer},
	} {
		t.Run(name, func(t *testing.T) {
			raw := fmt.Sprintf(`{"metadata":{"uid":"u","resourceVersion":"7","labels":{%q:"v"},"annotations":{%[1]q:"v",%q:"2"}},"spec":{"replicas":3,"updateStrategy":%s},"status":%s}`,
				v1alpha1.VersionKey, v1alpha1.AttemptAnnotation, tc.strategy, tc.status)
			c := attempt(2)
			c.Spec.WorkloadRef.APIVersion, c.Spec.WorkloadRef.Kind = tc.kind.GroupVersion().String(), tc.kind.Kind
			check := func(when, want string) {
				t.Helper()
				if got := holdConsequence(Input{ChangeWorkload: c, Workload: workloadOf(readWorkload(t, tc.kind, raw), workload.ExcludedNodes{})}); got != want {
					t.Errorf("%s: %q, want %q", when, got, want)
				}
			}
			check("the hold begins", tc.begins)
			patch, err := holdPatch(readWorkload(t, tc.kind, raw), c, t0)
			raw = patchJSON(t, raw, patch, err)
			check("it is held", tc.held)
			raw = patchJSON(t, raw, []byte(`[{"op":"add","path":"/spec/replicas","value":4}]`), nil)
			check("it is scaled up meanwhile", tc.held)
		})
	}
}

// OpenKruise Rollouts pauses the Deployment itself, so a hold stops nothing.
func TestAHoldNamesOpenKruiseRolloutsIfItRollsTheDeploymentOut(t *testing.T) {
	d := rolling()
	d.Spec.Paused = true
	d.Labels["rollouts.kruise.io/controlled-by-advanced-deployment-controller"] = "true"
	in := Input{ChangeWorkload: attempt(2), Workload: workloadOf(of(t, d), workload.ExcludedNodes{})}
	if got, want := holdConsequence(in), "; OpenKruise Rollouts may continue the rollout: pause its Rollout (spec.strategy.paused)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func readWorkload(t *testing.T, kind workload.Kind, raw string) *workload.Workload {
	t.Helper()
	w, err := workload.Read(kind, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func patchJSON(t *testing.T, raw string, patch []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	out, err := decoded.Apply([]byte(raw))
	if err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	return string(out)
}

func decode(t *testing.T, raw string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
