package diagnosis_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

// release is attempt 2 of version v in a phase, with the reasons of Succeeded and Held.
func release(phase v1alpha1.ReleasePhase, succeeded corev1.ConditionStatus, reason string, held corev1.ConditionStatus, heldReason string) *v1alpha1.ChangeWorkload {
	c := &v1alpha1.ChangeWorkload{}
	c.Name, c.Namespace = "web--x--v", "shop"
	c.Spec.Reversion, c.Spec.Attempt = "v", 2
	c.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	c.Status.Phase = phase
	c.Status.Conditions = []apis.Condition{
		{Type: apis.ConditionSucceeded, Status: succeeded, Reason: reason, Message: "because"},
		{Type: v1alpha1.ReleaseHeld, Status: held, Reason: heldReason, Message: "held"},
	}
	return c
}

func TestTheStateOfAReleaseIsThatOfTheReleaseThatWasAsked(t *testing.T) {
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	asked := v1alpha1.Release{Version: "v", Attempt: 2}
	earlier := release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, "NotSuspended")
	earlier.Spec.Attempt = 1
	for name, tc := range map[string]struct {
		asked, current v1alpha1.Release
		c              *v1alpha1.ChangeWorkload
		want           diagnosis.State
		reason         string
	}{
		"not opted in":                 {want: diagnosis.StateNotJudged, reason: "NoRelease"},
		"no ChangeWorkload yet":        {asked, asked, nil, diagnosis.StateRunning, "ReleasePending"},
		"that of an earlier attempt":   {asked, asked, earlier, diagnosis.StateRunning, "ReleasePending"},
		"pods are judged":              {asked, asked, release(v1alpha1.ReleaseRunning, unknown, "Judging", no, "NotSuspended"), diagnosis.StateRunning, "Judging"},
		"no pod becomes Ready":         {asked, asked, release(v1alpha1.ReleaseNoNewBatch, unknown, "RollingOut", no, "NotSuspended"), diagnosis.StateRunning, "RollingOut"},
		"passed":                       {asked, asked, release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, "NotSuspended"), diagnosis.StatePassed, "AllPodsPassed"},
		"a pod failed":                 {asked, asked, release(v1alpha1.ReleaseSuspend, no, "CheckFailed", yes, "Suspended"), diagnosis.StateHeld, "CheckFailed"},
		"unjudged and held":            {asked, asked, release(v1alpha1.ReleaseRunning, unknown, "HeldUnjudged", yes, "HeldUnjudged"), diagnosis.StateHeld, "HeldUnjudged"},
		"a pod failed in shadow mode":  {asked, asked, release(v1alpha1.ReleaseSuspend, no, "CheckFailed", no, "Shadow"), diagnosis.StateFailed, "CheckFailed"},
		"the order was not accepted":   {asked, asked, release(v1alpha1.ReleaseFailed, no, "OrderNotAccepted", no, "NotSuspended"), diagnosis.StateFailed, "OrderNotAccepted"},
		"a newer release replaced it":  {asked, v1alpha1.Release{Version: "w", Attempt: 3}, release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, ""), diagnosis.StateFailed, "Superseded"},
		"another template replaced it": {asked, v1alpha1.Release{Version: "w", Attempt: 2}, nil, diagnosis.StateFailed, "Superseded"},
		"a stale read of the workload": {asked, v1alpha1.Release{Version: "u", Attempt: 1}, release(v1alpha1.ReleaseSuccess, yes, "AllPodsPassed", no, ""), diagnosis.StatePassed, "AllPodsPassed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := diagnosis.StateOf(tc.asked, tc.current, tc.c); got.State != tc.want || got.Reason != tc.reason {
				t.Errorf("got %+v, want %s %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestATemplateThatTheWebhookMissedIsTheNextRelease(t *testing.T) {
	passed := release(v1alpha1.ReleaseSuccess, corev1.ConditionTrue, "AllPodsPassed", corev1.ConditionFalse, "")
	next := release(v1alpha1.ReleaseRunning, corev1.ConditionUnknown, "Judging", corev1.ConditionFalse, "")
	next.Spec.Reversion, next.Spec.Attempt = "w", 3
	missed := func(in *diagnosis.Input) { in.Missed = "w" }
	seen := func(in *diagnosis.Input) {
		in.Annotations = map[string]string{v1alpha1.VersionKey: "w", v1alpha1.AttemptAnnotation: "3"}
	}
	for name, tc := range map[string]struct {
		input  diagnosis.Input
		asked  v1alpha1.Release
		want   diagnosis.State
		reason string
	}{
		"the webhook has not seen it":      {input(with(passed), missed), next.Release(), diagnosis.StateRunning, "ReleasePending"},
		"the webhook has seen it since":    {input(with(passed, next), seen), next.Release(), diagnosis.StateRunning, "Judging"},
		"the release before is superseded": {input(with(passed), missed), passed.Release(), diagnosis.StateFailed, "Superseded"},
		"the namespace is not opted in":    {input(with(passed), missed, func(in *diagnosis.Input) { in.OptedIn = false }), next.Release(), diagnosis.StateNotJudged, "NamespaceNotOptedIn"},
		"the release before, not opted in": {input(with(passed), func(in *diagnosis.Input) { in.OptedIn = false }), passed.Release(), diagnosis.StateNotJudged, "NamespaceNotOptedIn"},
		"the release before is current":    {input(with(passed)), passed.Release(), diagnosis.StatePassed, "AllPodsPassed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.input.StateOf(tc.asked); got.State != tc.want || got.Reason != tc.reason {
				t.Errorf("got %+v, want %s %s", got, tc.want, tc.reason)
			}
		})
	}
	if in := input(with(passed), missed); in.CurrentRelease() != next.Release() || in.CurrentChangeWorkload() != nil || in.LastSucceeded().Name != passed.Name {
		t.Errorf("the current release is %+v, its ChangeWorkload %v, the last success %v", in.CurrentRelease(), in.CurrentChangeWorkload(), in.LastSucceeded())
	}
}

func TestTheStateNamesTheRollbackOfARelease(t *testing.T) {
	const cause = "(SelfHealed): 1 of 1 pods did not run for 2m0s, and none recovered: web-1 (ImagePullBackOff)"
	bad, good := v1alpha1.Release{Version: "bad", Attempt: 1}, v1alpha1.Release{Version: "v", Attempt: 2}
	passed := release(v1alpha1.ReleaseSuccess, corev1.ConditionTrue, "AllPodsPassed", corev1.ConditionFalse, "")
	for name, tc := range map[string]struct {
		attempt int64 // of the rollback
		asked   v1alpha1.Release
		want    diagnosis.ReleaseState
	}{
		"it was rolled back": {2, bad, diagnosis.ReleaseState{State: diagnosis.StateFailed, Reason: "Superseded",
			Message: "Breakwater rolled it back to version v, attempt 2 " + cause}},
		"it is the rollback": {2, good, diagnosis.ReleaseState{State: diagnosis.StatePassed, Reason: "AllPodsPassed",
			Message: "because; it is the rollback of version bad, attempt 1 " + cause}},
		"it came after a rollback": {1, good, diagnosis.ReleaseState{State: diagnosis.StatePassed, Reason: "AllPodsPassed", Message: "because"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(with(passed), func(in *diagnosis.Input) {
				in.Annotations[v1alpha1.RollbackAnnotation] = fmt.Sprintf(`{"kind":"self-healing","fromVersion":"bad","fromAttempt":%d,"toVersion":"v","attempt":%d,`+
					`"message":"1 of 1 pods did not run for 2m0s, and none recovered: web-1 (ImagePullBackOff)"}`, tc.attempt-1, tc.attempt)
			})
			if got := in.StateOf(tc.asked); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestStatusWaitsForTheFirstReleaseOfAWorkload(t *testing.T) {
	none := diagnosis.StateOf(v1alpha1.Release{}, v1alpha1.Release{}, nil)
	for name, tc := range map[string]struct {
		state  diagnosis.ReleaseState
		waited time.Duration
		want   diagnosis.State
		reason string
	}{
		"the webhook may have missed it": {none, 0, diagnosis.StateRunning, "ReleasePending"},
		"its kind is not judged":         {none, 30 * time.Second, diagnosis.StateNotJudged, "NoRelease"},
		"the namespace is not opted in":  {diagnosis.Input{}.StateOf(v1alpha1.Release{}), 0, diagnosis.StateNotJudged, "NamespaceNotOptedIn"},
		"a release":                      {diagnosis.ReleaseState{State: diagnosis.StatePassed, Reason: "AllPodsPassed"}, 0, diagnosis.StatePassed, "AllPodsPassed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.After(tc.waited); got.State != tc.want || got.Reason != tc.reason {
				t.Errorf("got %+v, want %s %s", got, tc.want, tc.reason)
			}
		})
	}
}
