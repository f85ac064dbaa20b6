package diagnosis

import (
	"fmt"
	"time"

	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// State is the state of a release, pod, budget or flow control, for a person or a CI job.
type State string

// The states.
const (
	StateRunning State = "Running"
	// StatePassed: the release passed, or a pod of it.
	StatePassed State = "Passed"
	// StateHeld: the rollout is stopped until a person decides. If it is unjudged, a late verdict ends
	// the hold, too. If the server has not accepted the order, its acceptance does.
	StateHeld   State = "Held"
	StateFailed State = "Failed"
	// StateNotWaiting: a pod waits for no permission, whatever its verdict is.
	StateNotWaiting State = "NotWaiting"
	// StateAllowing and StateDenying: a budget or flow control allows or denies requests.
	StateAllowing State = "Allowing"
	StateDenying  State = "Denying"
	// StateNotJudged: Breakwater does not judge the workload: its namespace is not opted in, or it has no
	// release, or only one of a former template.
	StateNotJudged State = "NotJudged"
)

// reasonNoRelease is the reason of a workload without a release.
const reasonNoRelease = "NoRelease"

// firstReleaseTimeout is how long command status waits for the first release of a workload. If the webhook missed the
// creation, the controller makes the API server call it again within seconds.
const firstReleaseTimeout = 30 * time.Second

// EndsWait reports whether command status stops waiting. A late verdict or acceptance of the order can
// still change Held, and a Ready pod a release that timed out.
func (s State) EndsWait() bool { return s != StateRunning }

// ReleaseState is the state of a release with its reason.
type ReleaseState struct {
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// After returns the state after command status waited: Running while a workload without a release may still get one.
func (r ReleaseState) After(waited time.Duration) ReleaseState {
	if r.Reason != reasonNoRelease || waited >= firstReleaseTimeout {
		return r
	}
	return ReleaseState{StateRunning, v1alpha1.ReasonReleasePending, "the webhook has not seen the workload, so it is not judged yet"}
}

// StateOf returns the state of release awaited of the workload, which was its current one when the
// command started.
func (in Input) StateOf(awaited v1alpha1.Release) ReleaseState {
	if !in.OptedIn {
		return ReleaseState{StateNotJudged, "NamespaceNotOptedIn", NotOptedIn(in.Namespace, in.NamespaceLabel)}
	}
	r := StateOf(awaited, in.CurrentRelease(), in.Find(awaited))
	if in.Missed != "" && r.Reason == v1alpha1.ReasonReleasePending {
		r.Message = "the webhook has not seen the pod template, so it is not judged yet"
	}
	switch b := v1alpha1.RollbackOf(in.Annotations); {
	case b == nil:
	case b.From() == awaited:
		r.Message = fmt.Sprintf("Breakwater rolled it back to version %s, attempt %d (%s): %s", b.ToVersion, b.Attempt, b.Kind.Reason(), b.Message)
	case b.Attempt == awaited.Attempt:
		r.Message += fmt.Sprintf("; it is the rollback of version %s, attempt %d (%s): %s", b.FromVersion, b.FromAttempt, b.Kind.Reason(), b.Message)
	}
	return r
}

// NotOptedIn says why releases in a namespace are not judged. label is the value of the label that opts it in.
func NotOptedIn(namespace, label string) string {
	value := ""
	switch {
	case v1alpha1.ExcludedNamespace(namespace):
		return fmt.Sprintf("releases in namespace %s are never judged: Breakwater needs its pods to start", namespace)
	case label != "":
		value = fmt.Sprintf(": its value is %q", label)
	}
	return fmt.Sprintf("namespace %s has no label %s=%s%s, so releases in it are not judged", namespace, v1alpha1.NamespaceLabel, v1alpha1.NamespaceEnabled, value)
}

// StateOf returns the state of release awaited, which was the current one of its workload when
// the command started. current is the workload's current release now. c is the ChangeWorkload of
// awaited; nil if it has none.
func StateOf(awaited, current v1alpha1.Release, c *v1alpha1.ChangeWorkload) ReleaseState {
	switch {
	case awaited == (v1alpha1.Release{}):
		return ReleaseState{StateNotJudged, reasonNoRelease, "the workload has no release: its kind is not judged, or the webhook has not seen it"}
	case current.Attempt >= awaited.Attempt && current != awaited:
		return ReleaseState{StateFailed, v1alpha1.ReasonSuperseded, fmt.Sprintf("version %s, attempt %d, replaced it", current.Version, current.Attempt)}
	case c == nil || c.Release() != awaited:
		return ReleaseState{StateRunning, v1alpha1.ReasonReleasePending, "the release has no ChangeWorkload yet"}
	}
	succeeded, held := c.Status.GetCondition(apis.ConditionSucceeded), c.Status.GetCondition(v1alpha1.ReleaseHeld)
	r := ReleaseState{StateRunning, succeeded.GetReason(), succeeded.GetMessage()}
	switch {
	case c.Status.Phase == v1alpha1.ReleaseSuccess:
		r.State = StatePassed
	case held.IsTrue():
		r.State = StateHeld
		if !succeeded.IsFalse() {
			r.Reason, r.Message = held.Reason, held.Message
		}
	case c.Status.Phase == v1alpha1.ReleaseSuspend, c.Status.Phase == v1alpha1.ReleaseFailed:
		r.State = StateFailed
	}
	return r
}
