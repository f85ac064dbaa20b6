package changeworkload

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Revisions are the Revisions of a Knative Service on which its traffic depends if the release
// fails its check.
type Revisions struct {
	// Own are the names of the Revisions of the release, failed or not. A change of scale creates
	// another one.
	Own []string
	// Good is the last Revision of a version that succeeded; empty if there is none, or as long as
	// no traffic has to be moved.
	Good string
}

// revisionsOf returns the Revisions of a release. Deployments are those of the Service.
func revisionsOf(release v1alpha1.Release, deployments []*workload.Workload) []string {
	var names []string
	for _, d := range deployments {
		if of, known := v1alpha1.ReleaseOf(d.Annotations); known && of == release {
			names = append(names, revisionName(d))
		}
	}
	return slices.Sorted(slices.Values(names))
}

// History is what is known about the releases of a Service.
type History struct {
	// Saved are the templates of versions that succeeded. They outlive the ChangeWorkloads.
	Saved []savedtemplate.Saved
	// Releases are the ChangeWorkloads of the Service. They are needed besides Saved, because a
	// template is saved some time after its version succeeded, and deleted some time after it failed.
	Releases []*v1alpha1.ChangeWorkload
}

// goodRevision returns the last Revision of a version that succeeded, other than that of the failed
// release; empty if there is none. Deployments are those of the Service.
func goodRevision(failed v1alpha1.Release, deployments []*workload.Workload, history History) string {
	good := slices.DeleteFunc(slices.Clone(deployments), func(d *workload.Workload) bool { return !history.succeeded(d, failed) })
	if len(good) == 0 {
		return ""
	}
	return revisionName(slices.MaxFunc(good, func(a, b *workload.Workload) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}))
}

// succeeded reports whether the Deployment is that of a Revision whose release succeeded.
//
// The Revision of a baseline has no release. The baseline is good if it was available, which its
// saved template shows; a Revision without a release that was created later was missed by the webhook.
func (h History) succeeded(d *workload.Workload, failed v1alpha1.Release) bool {
	release, known := v1alpha1.ReleaseOf(d.Annotations)
	if !known {
		return slices.ContainsFunc(h.Saved, func(k savedtemplate.Saved) bool {
			return k.Release.IsBaseline() && !d.CreationTimestamp.After(k.Created.Time)
		})
	}
	if release.Version == failed.Version || slices.ContainsFunc(h.Releases, func(c *v1alpha1.ChangeWorkload) bool {
		return c.Spec.Reversion == release.Version && c.CountsAsFailed()
	}) {
		return false
	}
	return slices.ContainsFunc(h.Saved, func(k savedtemplate.Saved) bool { return k.Release == release }) ||
		slices.ContainsFunc(h.Releases, func(c *v1alpha1.ChangeWorkload) bool {
			return c.Release() == release && c.Status.Phase == v1alpha1.ReleaseSuccess && c.Status.Counts.Pods > 0 && c.DeletionTimestamp == nil
		})
}

func revisionName(deployment *workload.Workload) string {
	if owner := metav1.GetControllerOfNoCopy(deployment); owner != nil {
		return owner.Name
	}
	return ""
}

// readGoodRevision reads the Revision that gets the traffic of a failed one; empty if there is
// none, and for other kinds.
func (r *Reconciler) readGoodRevision(ctx context.Context, w *workload.Workload, c *v1alpha1.ChangeWorkload) (string, error) {
	if w.Kind.Revisions != workload.KnativeRevisions {
		return "", nil
	}
	own, err := r.releasesOf(w)
	if err != nil {
		return "", err
	}
	saved, err := savedtemplate.List(ctx, r.kube, w)
	if err != nil {
		return "", err
	}
	return goodRevision(c.Release(), r.workloads.Deployments(w), History{saved, own}), nil
}

// holdTraffic moves the traffic of the failed Revisions to the good one. The record has what was
// moved by this hold, or by that of an earlier attempt in the same suspension.
func holdTraffic(w *workload.Workload, revisions Revisions) (*v1alpha1.HeldTraffic, []workload.Operation) {
	record := v1alpha1.HeldTraffic{}
	if older := v1alpha1.HeldTrafficOf(w.Labels, w.Annotations); older != nil && !changedUntilJudged(w) {
		record = *older
	}
	record.Failed = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(record.Failed), revisions.Own...))))
	moved, changed := knativetraffic.Move(w.Traffic, knativetraffic.Revisions{Names: record.Failed, Latest: true}, revisions.Good)
	if !changed {
		return &record, nil
	}
	record.To = revisions.Good
	if record.Former == nil {
		record.Former = w.Traffic
	}
	return &record, w.WriteTraffic(moved)
}

// changedUntilJudged reports whether a person changed the split during a hold until the release is
// judged: then the fail moves that split, and its end restores it.
func changedUntilJudged(w *workload.Workload) bool {
	hold := v1alpha1.HoldOf(w.Annotations)
	return hold.IsUntilJudged() && len(w.RestoreTraffic(hold.Traffic)) == 0
}

// moveTrafficOperations move the traffic of Revisions that were created after the hold.
func moveTrafficOperations(w *workload.Workload, in Input, _ Action) ([]workload.Operation, error) {
	hold := ptr.Deref(v1alpha1.HoldOf(w.Annotations), v1alpha1.Hold{})
	var traffic []workload.Operation
	hold.Traffic, traffic = holdTraffic(w, in.Revisions)
	encoded, err := json.Marshal(hold)
	if err != nil {
		return nil, fmt.Errorf("encode the hold of %s: %w", w.Name, err)
	}
	ops := append(sameReleaseTests(w, in.ChangeWorkload), workload.Operation{Op: "add", Path: workload.Annotation(v1alpha1.HoldAnnotation), Value: string(encoded)})
	return append(ops, traffic...), nil
}

// untilJudgedDetail says where the traffic is while a release is judged before it gets traffic.
func untilJudgedDetail(in Input) string {
	detail := "the rollout is not held, but the new Revision gets traffic only after its first batch passed"
	if held := in.Workload.Hold.Traffic; held != nil {
		detail += "; its share is at Revision " + held.To
	}
	return detail
}

// untilRepairedDetail says, before the name of the Revision that trafficOfRepair returns, where the traffic is.
const untilRepairedDetail = "the rollout is not held, but the new Revision gets traffic only after a repair or a rollback succeeded; its share is at Revision "

// trafficOfRepair returns the Revision that keeps the share of a failed one while a repair or a rollback of a
// Knative Service runs; empty if there is none, or if spec.traffic, which a person may change, says otherwise.
func trafficOfRepair(in Input) string {
	b := in.Workload.Bypass
	if b == nil || b.Traffic == nil {
		return ""
	}
	unjudged := knativetraffic.Revisions{Names: slices.Concat(b.Traffic.Failed, in.Revisions.Own), Latest: true}
	kept := knativetraffic.Revisions{Names: []string{b.Traffic.To}}
	if unjudged.Share(in.Workload.Traffic) > 0 || kept.Share(in.Workload.Traffic) == 0 {
		return ""
	}
	return b.Traffic.To
}

// notUntilJudgedDetail lists why a release that is to be judged before it gets traffic may have traffic.
// The cause is not stored.
const notUntilJudgedDetail = "annotation " + v1alpha1.JudgeBeforeTrafficAnnotation + " is true, but the traffic is not held. " +
	"When the template was changed, one of these was the cause: (1) no Revision was Ready; (2) the latest Revision was not Ready; " +
	"(3) spec.traffic gave no share to the latest Revision; (4) the annotation was not set yet; " +
	"(5) the update was a rollback or bypassed a suspension; (6) the webhook did not answer or could not read the namespace; " +
	"(7) OpsConfigInfo isBlockingUp was off, or shadow was on"

// trafficConsequence says where the traffic of a failed Revision is.
func trafficConsequence(in Input) string {
	to := in.Revisions.Good
	if hold := in.Workload.Hold; hold != nil && hold.Traffic != nil {
		to = hold.Traffic.To
	}
	if to == "" {
		return "; spec.traffic is not changed, because no other Revision succeeded, or the failed one has no traffic"
	}
	return "; the traffic of the failed Revision is at Revision " + to
}
