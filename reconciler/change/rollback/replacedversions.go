package rollback

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// replacedVersions returns the versions whose pods may block the release: that of the rollback by Breakwater, and
// those of sinceSuccess if the release was admitted during a suspension and the controller replaces pods by itself. reason is
// that of the Events.
func (r *Reconciler) replacedVersions(c *v1alpha1.ChangeWorkload, w *workload.Workload) (versions []replacedVersion, reason string, err error) {
	if b := v1alpha1.CurrentBypassOf(w.Labels, w.Annotations); b != nil && b.Attempt == c.Spec.Attempt && !w.OnDelete {
		all, err := r.changeWorkloads.ChangeWorkloads(c.Namespace).List(labels.Everything())
		if err != nil {
			return nil, "", fmt.Errorf("list ChangeWorkloads: %w", err)
		}
		versions, reason = sinceSuccess(all, c), b.Kind.Reason()
	}
	if rollback := v1alpha1.RollbackOf(w.Annotations); rollback != nil && rollback.Attempt == c.Spec.Attempt {
		versions, reason = append(versions, replacedVersion{version: rollback.FromVersion}), rollback.Kind.Reason()
	}
	return versions, reason, nil
}

// replacedVersion is a version whose pods may block a release, if they were created at or after a time. Pods of a version that
// did not fail may be older than its last release: a rollback returns to the version that most pods still have.
type replacedVersion struct {
	version string
	since   metav1.Time
}

// sinceSuccess returns the versions of the releases of a workload that failed since the last success before
// a release, and of the repairs of them that did not succeed either, latest first.
func sinceSuccess(all []*v1alpha1.ChangeWorkload, before *v1alpha1.ChangeWorkload) []replacedVersion {
	earlier := slices.DeleteFunc(slices.Clone(all), func(c *v1alpha1.ChangeWorkload) bool {
		return c.Spec.WorkloadRef.UID != before.Spec.WorkloadRef.UID || c.Spec.Attempt >= before.Spec.Attempt
	})
	slices.SortFunc(earlier, func(a, b *v1alpha1.ChangeWorkload) int { return cmp.Compare(b.Spec.Attempt, a.Spec.Attempt) })
	var versions []replacedVersion
	failed := 0
	for _, c := range earlier {
		if c.Status.Phase == v1alpha1.ReleaseSuccess {
			break
		}
		v := replacedVersion{version: c.Spec.Reversion}
		if c.CountsAsFailed() {
			failed = len(versions) + 1
		} else {
			v.since = c.CreationTimestamp
		}
		versions = append(versions, v)
	}
	return versions[:failed]
}
