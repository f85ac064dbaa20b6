package rollback

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// replacedVersions returns the versions whose pods may block the release: that of the rollback by Breakwater, and
// failedVersions if the release was admitted during a suspension and the controller replaces pods by itself. reason is
// that of the Events.
func (r *Reconciler) replacedVersions(c *v1alpha1.ChangeWorkload, w *workload.Workload) (versions []string, reason string, err error) {
	if b := v1alpha1.CurrentBypassOf(w.Labels, w.Annotations); b != nil && b.Attempt == c.Spec.Attempt && !w.OnDelete {
		all, err := r.changeWorkloads.ChangeWorkloads(c.Namespace).List(labels.Everything())
		if err != nil {
			return nil, "", fmt.Errorf("list ChangeWorkloads: %w", err)
		}
		versions, reason = failedVersions(all, c), b.Kind.Reason()
	}
	if rollback := v1alpha1.RollbackOf(w.Annotations); rollback != nil && rollback.Attempt == c.Spec.Attempt {
		versions, reason = append(versions, rollback.FromVersion), rollback.Kind.Reason()
	}
	return versions, reason, nil
}

// failedVersions returns the versions of the releases of a workload that failed since the last success before
// a release, and of the repairs of them that did not succeed either, latest first.
func failedVersions(all []*v1alpha1.ChangeWorkload, before *v1alpha1.ChangeWorkload) []string {
	earlier := slices.DeleteFunc(slices.Clone(all), func(c *v1alpha1.ChangeWorkload) bool {
		return c.Spec.WorkloadRef.UID != before.Spec.WorkloadRef.UID || c.Spec.Attempt >= before.Spec.Attempt
	})
	slices.SortFunc(earlier, func(a, b *v1alpha1.ChangeWorkload) int { return cmp.Compare(b.Spec.Attempt, a.Spec.Attempt) })
	var versions []string
	failed := 0
	for _, c := range earlier {
		if c.Status.Phase == v1alpha1.ReleaseSuccess {
			break
		}
		versions = append(versions, c.Spec.Reversion)
		if c.CountsAsFailed() {
			failed = len(versions)
		}
	}
	return versions[:failed]
}
