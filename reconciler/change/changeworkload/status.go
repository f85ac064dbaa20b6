package changeworkload

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// listLimit is the length of the lists of pods in status, except that of failed
// pods (maxFailedPods); counts are complete. Functions read the object for each verdict:
// with lists of 100 these reads were half of the API server's load in a release of
// 1000 pods.
const listLimit = 25

// maxFailedPods is how many failed pods the status lists, and maxMessageBytes the maximum size of their messages
// together. The object must stay below the 1.5 MiB limit of etcd, or no write succeeds.
const (
	maxFailedPods   = 1000
	maxMessageBytes = 256 << 10
)

// derive returns a copy of the ChangeWorkload with the derived status of a decision.
func derive(in Input, d Decision) *v1alpha1.ChangeWorkload {
	next := in.ChangeWorkload.DeepCopy()
	st := &next.Status
	t := d.Pods
	st.DefensePreparingPods = firstPods(t.Preparing)
	st.DefenseCheckingPods = firstPods(t.Checking)
	st.DefenseCheckPassPods = firstPods(t.Passed)
	st.DefenseCheckFailPods = limitFailed(st.DefenseCheckFailPods, t.Failed)
	st.Counts = v1alpha1.PodCounts{
		Pods:      int32(len(t.Preparing) + len(t.Checking) + len(t.Passed) + len(t.Failed)),
		Preparing: int32(len(t.Preparing)),
		Checking:  int32(len(t.Checking)),
		Passed:    int32(len(t.Passed)),
		Failed:    int32(len(t.Failed)),
		Unjudged:  int32(t.PassedUnjudged),
	}
	st.ObservedGeneration = next.Generation
	if st.Phase != d.Phase || st.EntryTimeUnix == 0 {
		st.EntryTime, st.EntryTimeUnix = v1alpha1.FormatTime(in.Now), in.Now.Unix()
	}
	st.Phase = d.Phase
	st.OrderStep = d.Order.Step
	st.Probation, st.RolledOutPods = d.Probation, d.RolledOutPods
	announceChanges(in, next, d)
	markConditions(next, in, d)
	st.UpdateTime, st.UpdateTimeUnix = v1alpha1.FormatTime(in.Now), in.Now.Unix()
	return next
}

// change is the kind of difference between two statuses.
type change int

const (
	// same: only updateTime differs.
	same change = iota
	// progress: counts or lists differ. It is written once per progressInterval.
	progress
	// announced: the Broker has accepted an announcement; counts or lists may differ, too. It
	// is written at the same interval as progress.
	announced
	// transition: the phase, a condition, the step of the order, the probation or rolledOutPods differs, or a pod
	// failed. It is written at once.
	transition
)

func compare(old, next *v1alpha1.ChangeWorkload) change {
	a, b := old.Status.DeepCopy(), next.Status.DeepCopy()
	a.UpdateTime, a.UpdateTimeUnix = b.UpdateTime, b.UpdateTimeUnix
	if equality.Semantic.DeepEqual(a, b) {
		return same
	}
	if a.Phase != b.Phase || !equality.Semantic.DeepEqual(a.OrderStep, b.OrderStep) || !equality.Semantic.DeepEqual(a.Probation, b.Probation) || a.Counts.Failed != b.Counts.Failed ||
		a.RolledOutPods != b.RolledOutPods || len(a.Conditions) != len(b.Conditions) {
		return transition
	}
	for i := range a.Conditions {
		// The reason of an Unknown condition changes with every pod.
		known := b.Conditions[i].Status != corev1.ConditionUnknown
		if a.Conditions[i].Status != b.Conditions[i].Status || (known && a.Conditions[i].Reason != b.Conditions[i].Reason) {
			return transition
		}
	}
	if len(a.Announcements) != len(b.Announcements) {
		return announced
	}
	return progress
}

// nextStatus returns the status to write and how it differs. A replaced Success
// keeps the counts and lists of its end while its pods are deleted, when only an
// announcement is removed or its probation ends.
func nextStatus(in Input, d Decision) (*v1alpha1.ChangeWorkload, change) {
	next := derive(in, d)
	kind := compare(in.ChangeWorkload, next)
	if replacedSuccess(in) && (kind == announced || kind == transition && onlyProbation(in.ChangeWorkload, next)) {
		announcements := next.Status.Announcements
		next = in.ChangeWorkload.DeepCopy()
		next.Status.Announcements, next.Status.Probation = announcements, d.Probation
	}
	return next, kind
}

// onlyProbation reports whether no other transition than that of the probation is to be written.
func onlyProbation(old, next *v1alpha1.ChangeWorkload) bool {
	same := old.DeepCopy()
	same.Status.Probation = next.Status.Probation
	return compare(same, next) != transition
}

// writeDelay returns the delay of the write of a change, and false if the change is
// not written. A replaced Success keeps the counts and lists of its end while its
// pods are deleted.
func writeDelay(c change, in Input) (time.Duration, bool) {
	st := in.ChangeWorkload.Status
	switch {
	case c == same, c == progress && replacedSuccess(in):
		return 0, false
	case c == transition:
		return 0, true
	default:
		every := progressInterval(max(st.Counts.Pods, in.Workload.Replicas))
		if c == progress && st.Phase == v1alpha1.ReleaseSuccess {
			every = successInterval
		}
		return max(0, time.Unix(st.UpdateTimeUnix, 0).Add(every).Sub(in.Now)), true
	}
}

// successInterval is the interval of progress writes of a current Success: an autoscaler
// adds and removes pods for as long as the version runs.
const successInterval = 10 * time.Minute

// progressInterval is the interval of progress writes: one second for each hundred
// pods, so that their number and size stay small next to the writes of the pods.
func progressInterval(pods int32) time.Duration {
	return max(time.Second, min(10*time.Second, time.Duration(pods)*time.Second/100))
}

func markConditions(next *v1alpha1.ChangeWorkload, in Input, d Decision) {
	m := next.GetConditionSet().Manage(next.GetStatus())
	switch d.Phase {
	case v1alpha1.ReleaseSuccess:
		m.MarkTrueWithReason(apis.ConditionSucceeded, d.Reason, "%s", d.Detail)
	case v1alpha1.ReleaseSuspend, v1alpha1.ReleaseFailed:
		m.MarkFalse(apis.ConditionSucceeded, d.Reason, "%s", d.Detail)
	default:
		m.MarkUnknown(apis.ConditionSucceeded, d.Reason, "%s", d.Detail)
	}
	markOrder(next, in, d, m)
	markOrderJudged(in, d, m)
	markJudged(in, d, m)
	markHeld(in, d, m)
	markDrifted(in, m)
	markKstatus(next, m)
}

func markOrder(next *v1alpha1.ChangeWorkload, in Input, d Decision, m apis.ConditionManager) {
	switch {
	case next.Status.Order.Opened():
		setInfo(m, v1alpha1.ReleaseOrderAccepted, corev1.ConditionTrue, v1alpha1.ReasonOrderOpened, "")
	case d.Reason == v1alpha1.ReasonOrderNotAccepted:
		setInfo(m, v1alpha1.ReleaseOrderAccepted, corev1.ConditionFalse, v1alpha1.ReasonOrderNotAccepted, d.Detail)
	case d.HeldUnaccepted:
		setInfo(m, v1alpha1.ReleaseOrderAccepted, corev1.ConditionUnknown, v1alpha1.ReasonOrderNotAccepted, d.Detail)
	case d.OrderPending:
		setInfo(m, v1alpha1.ReleaseOrderAccepted, corev1.ConditionUnknown, v1alpha1.ReasonOrderPending, d.Detail)
	case !in.ServerConfigured && d.Reason != v1alpha1.ReasonBaseline:
		setInfo(m, v1alpha1.ReleaseOrderAccepted, corev1.ConditionFalse, v1alpha1.ReasonNoServerConfigured,
			"no AlterShield server is configured: ConfigMap config-altershield, key base-url")
	}
}

func markJudged(in Input, d Decision, m apis.ConditionManager) {
	switch {
	case d.Reason == v1alpha1.ReasonBaseline:
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionFalse, v1alpha1.ReasonBaseline, d.Detail)
	case d.Pods.FailedUnjudged > 0 && d.Pods.FailedUnjudged == len(d.Pods.Failed):
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionFalse, v1alpha1.ReasonFailedUnjudged,
			d.Pods.FailedBy.after("unjudged pods failed"))
	case d.Pods.HeldUnjudged > 0:
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionFalse, v1alpha1.ReasonHeldUnjudged, d.Pods.summary())
	case d.Pods.PassedUnjudged > 0:
		// The number of pods would make each pod a transition; counts.unjudged has it.
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionFalse, v1alpha1.ReasonPassedUnjudged,
			d.Pods.PassedBy.after("unjudged pods passed"))
	case succeededUnjudged(in, d):
		// The condition stays as it was while the pods existed.
	case d.Phase == v1alpha1.ReleaseSuccess && !succeedsWithPods(in, d.Pods):
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionFalse, v1alpha1.ReasonNoVerdict, noPodDetail)
	case d.Reason == v1alpha1.ReasonOrderNotAccepted:
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionFalse, v1alpha1.ReasonOrderNotAccepted, d.Detail)
	case d.Phase == v1alpha1.ReleaseSuccess, len(d.Pods.Failed) > 0, everyPodPassed(in, d):
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionTrue, v1alpha1.ReasonVerdictReceived, "")
	default:
		setInfo(m, v1alpha1.ReleaseJudged, corev1.ConditionUnknown, v1alpha1.ReasonJudging, "")
	}
}

// succeededUnjudged reports whether the release succeeded with unjudged pods, and one of them was deleted and has
// no verdict yet.
func succeededUnjudged(in Input, d Decision) bool {
	before := &in.ChangeWorkload.Status
	return d.Phase == v1alpha1.ReleaseSuccess && before.Phase == v1alpha1.ReleaseSuccess && d.Pods.DeletedUnjudged > 0 &&
		before.GetCondition(v1alpha1.ReleaseJudged).GetReason() == v1alpha1.ReasonPassedUnjudged
}

// everyPodPassed reports whether all pods of a complete rollout passed. The order may
// have failed, or have no verdict yet: condition OrderJudged has that.
func everyPodPassed(in Input, d Decision) bool {
	return d.Pods.AnyPassed && rolloutPassed(in, d.Pods)
}

func markHeld(in Input, d Decision, m apis.ConditionManager) {
	switch {
	case d.ActionError != nil && d.Action != ActionSetDefenseStatus:
		status, reason := unchangedHold(in)
		setInfo(m, v1alpha1.ReleaseHeld, status, reason, d.Detail+"; the workload could not be changed: "+text.Truncate(d.ActionError.Error(), maxAnnouncementText))
	case d.Action == ActionSuspend, suspendedByRelease(in) && (d.Action == ActionNone || d.Action == ActionMoveTraffic):
		setInfo(m, v1alpha1.ReleaseHeld, corev1.ConditionTrue, v1alpha1.ReasonSuspended, d.Detail+holdConsequence(in))
	case d.Action == ActionHold, heldUnjudged(in) && d.Action == ActionNone:
		setInfo(m, v1alpha1.ReleaseHeld, corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged, d.Detail+holdConsequence(in))
	default:
		reason, message := notHeld(in, d)
		setInfo(m, v1alpha1.ReleaseHeld, corev1.ConditionFalse, reason, message)
	}
}

// heldUnjudged reports whether the rollout is held because pods or the order are unjudged.
func heldUnjudged(in Input) bool { return hasUnjudgedHold(in) && in.Workload.HoldState == HoldInForce }

// hasUnjudgedHold reports whether the workload has the record of such a hold. It stays when a person resumes the
// rollout, which would be held again without it.
func hasUnjudgedHold(in Input) bool {
	hold := in.Workload.Hold
	return hold.IsWithoutSuspension() && !hold.IsUntilJudged() && heldByRelease(in)
}

// unchangedHold returns status and reason of a hold that could not be changed.
func unchangedHold(in Input) (corev1.ConditionStatus, string) {
	switch {
	case suspendedByRelease(in):
		return corev1.ConditionTrue, v1alpha1.ReasonSuspended
	case heldUnjudged(in):
		return corev1.ConditionTrue, v1alpha1.ReasonHeldUnjudged
	default:
		return corev1.ConditionFalse, v1alpha1.ReasonWorkloadUnchanged
	}
}

// resumedDetail has no counts, with which the last transition of condition Held would change.
const resumedDetail = "the rollout was resumed, but not by Breakwater, although pods or the order are unjudged"

// notHeld returns reason and message of a rollout that is not held. Its traffic may be.
func notHeld(in Input, d Decision) (reason, message string) {
	failed := d.Phase == v1alpha1.ReleaseSuspend
	switch {
	case failed && in.Settings.Shadow:
		return v1alpha1.ReasonShadow, "OpsConfigInfo shadow is on: the workload is not suspended"
	case failed && !in.Settings.Blocking:
		return v1alpha1.ReasonBlockingDisabled, "OpsConfigInfo isBlockingUp is off: the workload is not suspended"
	case !isCurrent(in):
		return v1alpha1.ReasonNotSuspended, ""
	case hasUnjudgedHold(in) && d.Action == ActionNone:
		return v1alpha1.ReasonResumedUnjudged, resumedDetail
	case in.Workload.Hold.IsUntilJudged() && d.Action == ActionNone:
		return v1alpha1.ReasonTrafficUntilJudged, untilJudgedDetail(in)
	case trafficOfRepair(in) != "" && d.Action == ActionNone:
		return v1alpha1.ReasonTrafficUntilJudged, untilRepairedDetail + trafficOfRepair(in)
	case in.JudgeBeforeTraffic && in.Settings.Blocking && d.Phase != v1alpha1.ReleaseSuccess && !firstBatchPassed(in, in.ChangePods):
		return v1alpha1.ReasonNotSuspended, notUntilJudgedDetail
	default:
		return v1alpha1.ReasonNotSuspended, ""
	}
}

// setInfo sets a condition that does not change Succeeded.
func setInfo(m apis.ConditionManager, t apis.ConditionType, s corev1.ConditionStatus, reason, message string) {
	m.SetCondition(apis.Condition{Type: t, Status: s, Severity: apis.ConditionSeverityInfo, Reason: reason, Message: message})
}

// reasonOfSucceeded returns the reason of condition Succeeded, whatever its status is.
func reasonOfSucceeded(c *v1alpha1.ChangeWorkload) string {
	return c.Status.GetCondition(apis.ConditionSucceeded).GetReason()
}

// messageOfSucceeded returns the message of condition Succeeded, whatever its status is.
func messageOfSucceeded(c *v1alpha1.ChangeWorkload) string {
	return c.Status.GetCondition(apis.ConditionSucceeded).GetMessage()
}

func firstPods(pods []v1alpha1.PodSummary) []v1alpha1.PodSummary {
	return pods[:min(len(pods), listLimit)]
}

// limitFailed returns at most maxFailedPods pods, with messages cut to maxMessageBytes. Those that are stored already come
// first, because the fail of a pod may be stored nowhere else.
func limitFailed(stored, failed []v1alpha1.PodSummary) []v1alpha1.PodSummary {
	out := slices.Clone(failed)
	if len(out) > maxFailedPods {
		place := map[types.UID]int{}
		for _, p := range stored {
			place[p.UID] = -1
		}
		slices.SortStableFunc(out, func(a, b v1alpha1.PodSummary) int { return cmp.Compare(place[a.UID], place[b.UID]) })
		out = out[:maxFailedPods]
	}
	limit := maxMessageBytes / max(1, len(out))
	for i := range out {
		if m := out[i].Message; len(m) > limit {
			out[i].Message = strings.ToValidUTF8(m[:limit], "") // removes a rune that was cut
		}
	}
	return out
}
