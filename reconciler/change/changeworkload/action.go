package changeworkload

import (
	"slices"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// suspendAction suspends the workload unless it is suspended or blocking is off.
func suspendAction(in Input) Action {
	switch {
	case !in.Settings.Blocking && in.Workload.Hold.IsWithoutSuspension():
		return ActionResume
	case !in.Settings.Blocking:
		return ActionNone
	case suspendedByRelease(in) && hasFurtherRevisions(in):
		return ActionMoveTraffic
	case suspendedByRelease(in):
		return ActionNone
	default:
		return ActionSuspend
	}
}

// hasFurtherRevisions reports whether the failed release of a Knative Service has Revisions that the
// hold does not name: a change of scale has created them.
func hasFurtherRevisions(in Input) bool {
	held := in.Workload.Hold.Traffic
	return slices.ContainsFunc(in.Revisions.Own, func(name string) bool {
		return held == nil || !slices.Contains(held.Failed, name)
	})
}

// runningAction holds a rollout that is not complete while pods or the order are unjudged and no-verdict is
// Hold, and resumes it afterwards. It also ends a suspension whose fail was overruled. A held rollout that is
// complete stays held: until the workload's controller has seen the resume, the rollout would not be complete
// again, and would be held again. A hold that changed nothing, because a user had paused the rollout, is repeated when
// the user ends the pause.
func runningAction(in Input, d Decision) Action {
	unjudged := d.Pods.HeldUnjudged > 0 || d.HeldUnaccepted
	switch {
	case in.Workload.Hold.IsUntilJudged():
		return untilJudgedAction(in)
	case unjudged && in.Settings.Blocking && hasUnjudgedHold(in) && in.Workload.HoldState != HoldPauseEnded:
		return ActionNone
	case unjudged && in.Settings.Blocking && !in.Workload.complete():
		return ActionHold
	case in.Workload.Hold.IsWithoutSuspension(), suspendedByRelease(in):
		return ActionResume
	default:
		return ActionNone
	}
}

// untilJudgedAction gives the traffic of a Knative Service back when the first batch of the latest
// Revision, which gets it, passed, or the setting is off.
func untilJudgedAction(in Input) Action {
	if in.Settings.Blocking && in.JudgeBeforeTraffic && !firstBatchPassed(in, batchesOfLatest(in)) {
		return ActionNone
	}
	return ActionResume
}

// firstBatchPassed reports whether each pod of the first of some batches passed both stages, or counts as
// passed.
func firstBatchPassed(in Input, batches []*v1alpha1.ChangePod) bool {
	var first *v1alpha1.ChangePod
	for _, c := range batches {
		if first == nil || v1alpha1.ChangePodIndex(c.Name) < v1alpha1.ChangePodIndex(first.Name) {
			first = c
		}
	}
	return first != nil && !slices.ContainsFunc(first.Spec.PodInfos, func(p v1alpha1.PodSummary) bool {
		outcome, _ := first.OutcomeOf(p.Pod)
		unjudged := outcome == v1alpha1.OutcomeNoVerdict && noVerdictPolicy(in, first) == v1alpha1.NoVerdictPass
		return outcome != v1alpha1.OutcomePass && !unjudged
	})
}

// heldByRelease reports whether the hold of the workload is of this release.
func heldByRelease(in Input) bool {
	return in.Workload.Hold != nil && in.Workload.Hold.Attempt == in.ChangeWorkload.Spec.Attempt
}

// suspendedByRelease reports whether the workload is suspended because of this release.
func suspendedByRelease(in Input) bool {
	return in.Workload.Suspend != "" && heldByRelease(in) && in.Workload.Hold.Suspends()
}

// successAction ends a hold, or the suspension that this release was admitted to repair. A
// suspension by a person stays.
func successAction(in Input) Action {
	w := in.Workload
	switch {
	case w.Hold != nil, w.Bypass != nil && w.Bypass.Attempt == in.ChangeWorkload.Spec.Attempt:
		return ActionResume
	case !w.HasDefenseStatus:
		return ActionSetDefenseStatus
	default:
		return ActionNone
	}
}
