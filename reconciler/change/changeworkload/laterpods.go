package changeworkload

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// firstPodsOf counts the first pods of a Revision, on which its verdict depends.
type firstPodsOf struct {
	count int
	// since is the creation of the first batch, or zero.
	since time.Time
}

// enough reports whether a further pod, created at the given time, is not judged, because the Revision
// has enough first pods. With a Window it returns false while no pod of the Revision is in a batch.
func (f firstPodsOf) enough(limit settings.RevisionPods, created time.Time) bool {
	if limit.Count > 0 {
		return f.count >= limit.Count
	}
	return !f.since.IsZero() && created.After(f.since.Add(limit.Window))
}

// withoutLater returns the input of a decision without the pods that are not judged: those that started after the rollout
// (afterRollout) or, of a Knative Service, after the first pods of their Revision (revision-pods). After a Success nothing is
// judged, and the status counts all pods.
func withoutLater(in Input) Input {
	// isLater is called once for each pod that is in no batch, in the order in which they would be judged.
	var isLater func(Pod) bool
	switch st := &in.ChangeWorkload.Status; {
	case in.Workload.KnativeService:
		isLater = afterFirstPods(in)
	case st.RolledOutPods > 0 && st.Phase != v1alpha1.ReleaseSuccess:
		isLater = afterRollout(in)
	default:
		return in
	}
	claimed, later := claimedPods(in), map[types.UID]bool{}
	for _, p := range byReadiness(in.Pods) {
		later[p.UID] = !claimed[p.UID] && isLater(p)
		if later[p.UID] && !p.OnNotReadyNode { // the desired pods do not include it
			in.Later++
		}
	}
	in.Pods = slices.DeleteFunc(slices.Clone(in.Pods), func(p Pod) bool { return later[p.UID] })
	in.Workload = in.Workload.judging(in.Pods, in.Later)
	return in
}

// afterFirstPods returns a function that reports whether a pod that is in no batch is later than the first ones of its
// Revision.
func afterFirstPods(in Input) func(Pod) bool {
	first := map[string]firstPodsOf{}
	for _, c := range in.ChangePods {
		for i := range c.Spec.PodInfos {
			p := &c.Spec.PodInfos[i]
			if passedUnjudged(in, c, p.Pod) {
				continue // a further pod is judged instead
			}
			of := first[generatedFrom(p.Pod)]
			of.count++
			of.since = deadline.Earliest(of.since, c.CreationTimestamp.Time)
			first[generatedFrom(p.Pod)] = of
		}
	}
	return func(p Pod) bool {
		of := first[generatedFrom(p.Pod)]
		later := of.enough(in.Settings.RevisionPods, p.Created)
		of.count++
		first[generatedFrom(p.Pod)] = of
		return later
	}
}

// passedUnjudged reports whether a pod counts as passed without a verdict.
func passedUnjudged(in Input, c *v1alpha1.ChangePod, pod string) bool {
	outcome, _ := c.OutcomeOf(pod)
	return outcome == v1alpha1.OutcomeNoVerdict && noVerdictPolicy(in, c) == v1alpha1.NoVerdictPass
}

// byReadiness returns the finished pods by the time at which they became Ready, then the others.
func byReadiness(pods []Pod) []Pod {
	rank := func(p Pod) int {
		if p.Finished {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(slices.Values(pods), func(a, b Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.ReadySince.Compare(b.ReadySince), a.Created.Compare(b.Created), cmp.Compare(a.Pod, b.Pod))
	})
}

// latestInBatch reports whether a pod of the latest Revision of a Knative Service is in a batch. A change
// of scale creates a further Revision, which is not judged by the pods of the earlier one. Other kinds
// have no Revisions.
func latestInBatch(in Input) bool { return !in.Workload.KnativeService || len(batchesOfLatest(in)) > 0 }

// batchesOfLatest returns the batches with a pod of the latest Revision of a Knative Service.
func batchesOfLatest(in Input) []*v1alpha1.ChangePod {
	var out []*v1alpha1.ChangePod
	for _, c := range in.ChangePods {
		if slices.ContainsFunc(c.Spec.PodInfos, func(p v1alpha1.PodSummary) bool {
			return slices.ContainsFunc(in.LatestReplicaSets, func(set string) bool {
				return strings.HasPrefix(set+"-", generatedFrom(p.Pod)) // a long name is cut
			})
		}) {
			out = append(out, c)
		}
	}
	return out
}

// replicaSetsOf returns the names of the ReplicaSets of a Revision; empty if none is cached. The
// Deployments are those of a Service, and sets the ReplicaSets of a release.
func replicaSetsOf(revision string, deployments []*workload.Workload, sets []*appsv1.ReplicaSet) []string {
	var out []string
	for _, rs := range sets {
		if slices.ContainsFunc(deployments, func(d *workload.Workload) bool {
			return metav1.IsControlledBy(rs, d) && revisionName(d) == revision
		}) {
			out = append(out, rs.Name)
		}
	}
	return out
}

// randomSuffix is the length of what a ReplicaSet appends to the names of its pods.
const randomSuffix = 5

// generatedFrom returns the name of a pod without its random suffix. It distinguishes the Revisions of a
// release, also for a pod that was deleted: it has the name of the Revision or, if that is
// long, a hash of it. It also distinguishes the ReplicaSets of a Revision, unless its name is long.
func generatedFrom(pod string) string { return pod[:max(0, len(pod)-randomSuffix)] }
