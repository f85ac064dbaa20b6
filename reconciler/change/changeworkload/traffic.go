package changeworkload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Revisions are the Revisions of a Knative Service on which its traffic depends if the release
// fails its check.
type Revisions struct {
	// Failed are the names of the Revisions of the release. A change of scale creates another one.
	Failed []string
	// Good is the last Revision of a version that succeeded; empty if there is none.
	Good string
}

// revisionsOf returns the Revisions of a release. Deployments are those of the Service, and
// releases its ChangeWorkloads.
//
// The Revision of a baseline has no release. The baseline is good if it was available, which its
// saved template shows; a Revision without a release that was created later bypassed the webhook.
func revisionsOf(release v1alpha1.Release, deployments []*workload.Workload, releases []*v1alpha1.ChangeWorkload) Revisions {
	var out Revisions
	var good []*workload.Workload
	for _, d := range deployments {
		of, known := v1alpha1.ReleaseOf(d.Annotations)
		switch {
		case known && of == release:
			out.Failed = append(out.Failed, revisionName(d))
		case slices.ContainsFunc(releases, func(c *v1alpha1.ChangeWorkload) bool { return isGood(c, d, of, known) }):
			good = append(good, d)
		}
	}
	slices.Sort(out.Failed)
	if len(good) > 0 {
		out.Good = revisionName(slices.MaxFunc(good, func(a, b *workload.Workload) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		}))
	}
	return out
}

// isGood reports whether the Deployment of a Revision has the version of a release that succeeded.
func isGood(c *v1alpha1.ChangeWorkload, d *workload.Workload, of v1alpha1.Release, known bool) bool {
	if c.Status.Phase != v1alpha1.ReleaseSuccess || c.DeletionTimestamp != nil {
		return false
	}
	if known {
		return c.Release() == of && c.Status.Counts.Pods > 0
	}
	return c.Spec.Attempt == 0 && c.Status.SavedTemplateName != "" && !d.CreationTimestamp.After(c.CreationTimestamp.Time)
}

func revisionName(deployment *workload.Workload) string {
	if owner := metav1.GetControllerOfNoCopy(deployment); owner != nil {
		return owner.Name
	}
	return ""
}

// revisionsOf reads the Revisions of a release of a Knative Service from caches; of other kinds there
// are none.
func (r *Reconciler) revisionsOf(w *workload.Workload, c *v1alpha1.ChangeWorkload) (Revisions, error) {
	if w.Kind.Revisions != workload.KnativeRevisions {
		return Revisions{}, nil
	}
	all, err := r.lister.ChangeWorkloads(w.Namespace).List(labels.Everything())
	if err != nil {
		return Revisions{}, fmt.Errorf("list ChangeWorkloads: %w", err)
	}
	own := slices.DeleteFunc(all, func(o *v1alpha1.ChangeWorkload) bool { return o.Spec.WorkloadRef.UID != w.UID })
	return revisionsOf(c.Release(), r.workloads.Deployments(w), own), nil
}

// holdTraffic moves the traffic of the failed Revisions to the good one. The record has what was
// moved by this hold, or by that of an earlier attempt in the same suspension.
func holdTraffic(w *workload.Workload, revisions Revisions) (*v1alpha1.HeldTraffic, []workload.Operation) {
	record := v1alpha1.HeldTraffic{}
	if older := v1alpha1.HeldTrafficOf(w.Labels, w.Annotations); older != nil {
		record = *older
	}
	record.Failed = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(record.Failed), revisions.Failed...))))
	moved, changed := knativetraffic.Move(w.Traffic, knativetraffic.Failed{Names: record.Failed, Latest: true}, revisions.Good)
	if !changed {
		return &record, nil
	}
	record.To = revisions.Good
	if record.Former == nil {
		record.Former = w.Traffic
	}
	return &record, w.WriteTraffic(moved)
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
