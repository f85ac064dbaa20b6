package changeworkload

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/kmeta"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
)

// maxPendingCalls is how many batches of a release may wait for a call to the server. It bounds
// the ChangePods that one reconciliation creates, because a fail that arrives meanwhile holds
// the rollout only in the next reconciliation. It also bounds the queue of calls (callqueue),
// which releases share. Batches that wait for a verdict are not counted: checks may take long, and
// any number may run.
const maxPendingCalls = 50

// decideBatches returns the finished pods to claim now, by batch: full batches at
// once, an incomplete one when the rollout is complete or after WaitThreshold. It
// makes at most freeCalls batches. next is when WaitThreshold will have passed.
func decideBatches(in Input) (out [][]v1alpha1.PodSummary, next time.Time) {
	waiting := unclaimed(in)
	size := int(in.Settings.BatchSize(in.Workload.Replicas))
	for room := freeCalls(in); len(waiting) > 0; room-- {
		if room <= 0 {
			return out, time.Time{} // the next submission reconciles again
		}
		if len(waiting) < size {
			break
		}
		out = append(out, summaries(waiting[:size]))
		waiting = waiting[size:]
	}
	if len(waiting) == 0 {
		return out, noBatchDeadline(in)
	}
	since := in.Now
	for _, p := range waiting {
		since = deadline.Earliest(p.waitingSince(), since)
	}
	due := since.Add(in.Settings.WaitThreshold)
	if in.Workload.complete() || !in.Now.Before(due) {
		return append(out, summaries(waiting)), time.Time{}
	}
	return out, due
}

// waitingSince is from when WaitThreshold counts for a finished pod. Nothing records when a pod that is not
// Ready any more became Ready first: then it is the creation. Otherwise the batch of a pod that does not
// become Ready again, or whose readiness changes often, would wait without end.
func (p Pod) waitingSince() time.Time {
	if p.ReadySince.IsZero() {
		return p.Created
	}
	return p.ReadySince
}

// freeCalls is how many more batches may wait for a call.
func freeCalls(in Input) int {
	if !in.ServerConfigured {
		return len(in.Pods) // there are no calls
	}
	room := maxPendingCalls
	for _, c := range in.ChangePods {
		if hasPendingCall(c) {
			room--
		}
	}
	return room
}

// hasPendingCall reports whether a batch waits for a call to the server. A batch whose
// call failed does not delay others.
func hasPendingCall(c *v1alpha1.ChangePod) bool {
	if c.Status.Phase == v1alpha1.BatchExecuteDone || c.JudgedByPerson() {
		return false
	}
	pre, post := c.Status.VerdictOf(v1alpha1.StagePre), c.Status.VerdictOf(v1alpha1.StagePost)
	if pre == nil {
		start := c.Status.SubmissionOf(v1alpha1.StagePre)
		return start == nil || start.AnsweredTime == nil && start.Error == nil
	}
	return pre.Outcome() != v1alpha1.OutcomeFail && post == nil && c.Status.SubmissionOf(v1alpha1.StagePost) == nil
}

// noBatchDeadline is when the phase becomes TimeOutPreThreshold because no batch was
// created; zero if that time has passed, and while Breakwater stops the rollout. The release does not fail then.
func noBatchDeadline(in Input) time.Time {
	if stoppedByRelease(in) {
		return time.Time{}
	}
	if due := timeoutsSince(in).Add(in.Settings.WaitThreshold); in.Now.Before(due) {
		return due
	}
	return time.Time{}
}

// timeoutsSince is from when WaitThreshold and ReleaseTimeout count: the last progress or, if it is later, the end
// of a hold. The time in which Breakwater itself stopped the rollout does not count. Otherwise a release that waited
// for a person longer than ReleaseTimeout would fail when the person approves it.
//
// The end of a hold is the transition of condition Held to False. While the condition is still True after the hold
// has ended, because the status could not be written, it is now.
func timeoutsSince(in Input) time.Time {
	since := lastProgressTime(in)
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseHeld)
	switch {
	case stoppedByRelease(in), cond.IsTrue():
		return in.Now
	case cond != nil:
		return deadline.Latest(since, cond.LastTransitionTime.Inner.Time)
	default:
		return since
	}
}

// stoppedByRelease reports whether Breakwater has stopped the rollout because of this release. Traffic that is held
// until it is judged stops no rollout.
func stoppedByRelease(in Input) bool {
	return heldByRelease(in) && !in.Workload.Hold.IsUntilJudged()
}

// lastProgressTime is the creation of the newest batch, or of the release. If the release succeeded without
// pods and is judged again because it got some, the time is at least the start of that judging: in this
// decision now, in later decisions the transition of condition Judged to Unknown.
//
// For a Knative Service, which may have been scaled to zero, the time is at least the creation of a pod. While
// the Revision is Ready, this is the newest pod. While it is not, this is the oldest pod: pods that are started
// beside a stuck one are no progress. Serving also takes a Revision as not Ready while its only pod waits for
// a node.
func lastProgressTime(in Input) time.Time {
	if in.ChangeWorkload.Status.Phase == v1alpha1.ReleaseSuccess {
		return in.Now
	}
	since := in.ChangeWorkload.CreationTimestamp.Time
	if cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseJudged); cond != nil && cond.IsUnknown() {
		since = deadline.Latest(since, cond.LastTransitionTime.Inner.Time)
	}
	for _, c := range in.ChangePods {
		if c.CreationTimestamp.After(since) {
			since = c.CreationTimestamp.Time
		}
	}
	if !in.Workload.KnativeService || len(in.Pods) == 0 {
		return since
	}
	byCreation := func(a, b Pod) int { return a.Created.Compare(b.Created) }
	started := slices.MinFunc(in.Pods, byCreation)
	if in.Workload.complete() {
		started = slices.MaxFunc(in.Pods, byCreation)
	}
	return deadline.Latest(since, started.Created)
}

// unclaimed returns the finished pods that are in no ChangePod, by the time at
// which they became Ready.
func unclaimed(in Input) []Pod {
	claimed := claimedPods(in)
	var out []Pod
	for _, p := range in.Pods {
		if p.Finished && !claimed[p.UID] {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b Pod) int {
		if n := a.ReadySince.Compare(b.ReadySince); n != 0 {
			return n
		}
		return strings.Compare(a.Pod, b.Pod)
	})
	return out
}

// claimedPods are the UIDs of the pods in ChangePods.
func claimedPods(in Input) map[types.UID]bool {
	claimed := map[types.UID]bool{}
	for _, c := range in.ChangePods {
		for i := range c.Spec.PodInfos {
			claimed[c.Spec.PodInfos[i].UID] = true
		}
	}
	return claimed
}

func summaries(pods []Pod) []v1alpha1.PodSummary {
	out := make([]v1alpha1.PodSummary, len(pods))
	for i := range pods {
		out[i] = pods[i].PodSummary
	}
	return out
}

// nextIndex is the number in the next ChangePod's name. It comes from the same
// cache as the claims: with a stale cache the name exists, and the create fails.
func nextIndex(changePods []*v1alpha1.ChangePod) int {
	n := 0
	for _, c := range changePods {
		n = max(n, v1alpha1.ChangePodIndex(c.Name))
	}
	return n + 1
}

// position is the position of a batch among those of its release.
type position struct {
	// n is the number in the ChangePod's name, from 1.
	n int
	// total is the expected number of batches.
	total int
	// last: with this batch every desired pod is in a batch.
	last bool
}

// positions returns the positions of new batches. The number of later batches
// follows from the desired replicas: scaling up, or replacing a pod, may add batches
// that no earlier total contains.
func positions(in Input, groups [][]v1alpha1.PodSummary) []position {
	first := nextIndex(in.ChangePods)
	claims := claimedPods(in)
	for _, g := range groups {
		for i := range g {
			claims[g[i].UID] = true
		}
	}
	claimed := 0
	for _, p := range in.Pods {
		if claims[p.UID] {
			claimed++
		}
	}
	size := int(in.Settings.BatchSize(in.Workload.Replicas))
	left := max(0, int(in.Workload.Replicas)-claimed, len(in.Pods)-claimed)
	out := make([]position, len(groups))
	for i := range groups {
		out[i] = position{
			n: first + i, total: first - 1 + len(groups) + (left+size-1)/size,
			last: left == 0 && i == len(groups)-1,
		}
	}
	return out
}

// newChangePod returns a batch of a ChangeWorkload.
func newChangePod(c *v1alpha1.ChangeWorkload, at position, pods []v1alpha1.PodSummary, now time.Time) *v1alpha1.ChangePod {
	labels := map[string]string{}
	for _, key := range []string{v1alpha1.VersionKey, v1alpha1.DeploymentNameLabel} {
		if value, ok := c.Labels[key]; ok {
			labels[key] = value
		}
	}
	return &v1alpha1.ChangePod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            v1alpha1.ChangePodName(c.Name, at.n),
			Namespace:       c.Namespace,
			Labels:          labels,
			OwnerReferences: []metav1.OwnerReference{*kmeta.NewControllerRef(c)},
		},
		Spec: v1alpha1.ChangePodSpec{
			PodInfos:         pods,
			CreateTime:       v1alpha1.FormatTime(now),
			CreateTimeUnix:   now.Unix(),
			ChangeWorkloadID: c.Name,
			BatchNo:          int32(at.n - 1),
			TotalBatches:     int32(at.total),
			Last:             at.last,
		},
	}
}
