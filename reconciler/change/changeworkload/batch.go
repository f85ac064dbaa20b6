package changeworkload

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/kmeta"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// callsWaiting is how many batches of a release may wait for a call to the
// server. All that become finished at once would be a queue before the server,
// and the last in it would be out of time before anybody has asked: with 1000
// pods, one by one, the queue takes minutes. Those that wait for a verdict are
// not counted: a check may take as long as it wants, and there may be any number.
const maxPendingCalls = 50

// batches decides which finished pods go before the judge now: full batches at
// once, what is left over when the roll-out is complete or when it has waited
// for WaitThreshold; but never more than can be asked about soon. It also returns
// when the left over will have waited enough.
func decideBatches(in Input) (out [][]v1alpha1.PodSummary, next time.Time) {
	waiting := unclaimed(in)
	size := int(in.Settings.BatchSize(in.Workload.Replicas))
	for room := freeCalls(in); len(waiting) > 0; room-- {
		if room <= 0 {
			return out, time.Time{} // a batch that is asked about brings us back
		}
		if len(waiting) < size {
			break
		}
		out = append(out, summaries(waiting[:size]))
		waiting = waiting[size:]
	}
	if len(waiting) == 0 {
		return out, noPodDeadline(in)
	}
	since := in.Now
	for _, p := range waiting {
		since = earliest(p.ReadySince, since)
	}
	due := since.Add(in.Settings.WaitThreshold)
	if in.Workload.Complete || !in.Now.Before(due) {
		return append(out, summaries(waiting)), time.Time{}
	}
	return out, due
}

// roomForCalls is how many more batches may begin to wait for a call.
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

// waitsForCall says whether the server is to be asked about a batch. One that it
// was asked about in vain is no reason to keep others waiting.
func hasPendingCall(c *v1alpha1.ChangePod) bool {
	if c.Status.Phase == v1alpha1.PodExecuteDone || c.JudgedByPerson() {
		return false
	}
	pre, post := c.Status.VerdictOf(v1alpha1.StagePre), c.Status.VerdictOf(v1alpha1.StagePost)
	if pre == nil {
		start := c.Status.SubmissionOf(v1alpha1.StagePre)
		return start == nil || start.AnsweredTime == nil && start.Error == nil
	}
	return pre.Outcome() != v1alpha1.OutcomeFail && post == nil && c.Status.SubmissionOf(v1alpha1.StagePost) == nil
}

// emptyDeadline is when a release without a finished pod becomes late.
func noPodDeadline(in Input) time.Time {
	if due := lastProgressTime(in).Add(in.Settings.WaitThreshold); in.Now.Before(due) {
		return due
	}
	return time.Time{}
}

// waitingSince is when the release last got on: its beginning or its newest batch.
func lastProgressTime(in Input) time.Time {
	since := in.ChangeWorkload.CreationTimestamp.Time
	for _, c := range in.ChangePods {
		if c.CreationTimestamp.After(since) {
			since = c.CreationTimestamp.Time
		}
	}
	return since
}

// unclaimed returns the finished pods that no ChangePod has claimed, in the
// order in which they became Ready.
func unclaimed(in Input) []Pod {
	claimed := map[types.UID]bool{}
	for _, c := range in.ChangePods {
		for i := range c.Spec.PodInfos {
			claimed[c.Spec.PodInfos[i].UID] = true
		}
	}
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

func summaries(pods []Pod) []v1alpha1.PodSummary {
	out := make([]v1alpha1.PodSummary, len(pods))
	for i := range pods {
		out[i] = pods[i].PodSummary
	}
	return out
}

// nextIndex is the n of the next ChangePod's name. It comes from the same view
// as the claims: a stale view collides with a name that exists and is refused.
func nextIndex(changePods []*v1alpha1.ChangePod) int {
	n := 0
	for _, c := range changePods {
		n = max(n, v1alpha1.ChangePodIndex(c.Name))
	}
	return n + 1
}

// place is where a batch stands among those of its release.
type position struct {
	// n is that of the ChangePod's name, from 1.
	n int
	// total is how many batches there are and will be, as far as is known.
	total int
	// last: with this batch every wanted pod is before the judge.
	last bool
}

// places returns the places of the groups that go before the judge now. How
// many come after them follows from the replicas that are wanted: a scale, or
// a pod that is replaced, makes batches that nobody could count before.
func positions(in Input, groups [][]v1alpha1.PodSummary) []position {
	first := nextIndex(in.ChangePods)
	claims := map[types.UID]bool{}
	for _, c := range in.ChangePods {
		for i := range c.Spec.PodInfos {
			claims[c.Spec.PodInfos[i].UID] = true
		}
	}
	for _, g := range groups {
		for i := range g {
			claims[g[i].UID] = true
		}
	}
	there := 0
	for _, p := range in.Pods {
		if claims[p.UID] {
			there++
		}
	}
	size := int(in.Settings.BatchSize(in.Workload.Replicas))
	left := max(0, int(in.Workload.Replicas)-there, len(in.Pods)-there)
	out := make([]position, len(groups))
	for i := range groups {
		out[i] = position{
			n: first + i, total: first - 1 + len(groups) + (left+size-1)/size,
			last: left == 0 && i == len(groups)-1,
		}
	}
	return out
}

// changePod returns a batch of a ChangeWorkload.
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
