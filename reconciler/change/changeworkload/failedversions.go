package changeworkload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// The limits of the schema. A user may write the annotation of a rollback while the webhook is down.
const (
	maxFailedVersions = 50
	maxVersionLength  = 63
)

// failedVersions returns the versions of a workload whose pods are no reference for those of the current release:
// those whose release counts as failed, and the one that was rolled back last. The success of the rollback deletes
// the release of this version, although its samples are part of the minutes before the next one. This may be a release
// of the same version: a Knative Service has a Revision for each attempt. A fail of the current release itself does not
// count, because a person may overrule it.
func failedVersions(current v1alpha1.Release, releases []*v1alpha1.ChangeWorkload, rollback *v1alpha1.Rollback) []string {
	attempts := map[string]int64{}
	if rollback != nil && rollback.From() != current && len(rollback.FromVersion) <= maxVersionLength {
		attempts[rollback.FromVersion] = rollback.FromAttempt
	}
	for _, c := range releases {
		switch version := c.Spec.Reversion; {
		case c.Release() == current:
		case c.CountsAsFailed():
			attempts[version] = c.Spec.Attempt
		case attempts[version] != c.Spec.Attempt: // it was released again after the rollback
			delete(attempts, version)
		}
	}
	latest := slices.SortedFunc(maps.Keys(attempts), func(a, b string) int {
		return cmp.Or(cmp.Compare(attempts[b], attempts[a]), cmp.Compare(a, b))
	})
	return latest[:min(len(latest), maxFailedVersions)]
}

// failedVersionsOf returns failedVersions of a workload, from the cache. If the workload owns its pods itself,
// function judge takes a failed version as a sign that pods of the same names were bad in the minutes before the
// change. So a version that was rolled back, maybe long ago, is left out.
func (r *Reconciler) failedVersionsOf(w *workload.Workload, current v1alpha1.Release) ([]string, error) {
	releases, err := r.releasesOf(w)
	if err != nil {
		return nil, err
	}
	rollback := v1alpha1.RollbackOf(w.Annotations)
	if w.Kind.Revisions == workload.ControllerRevisions {
		rollback = nil
	}
	return failedVersions(current, releases, rollback), nil
}

// releasesOf returns the cached ChangeWorkloads of a workload.
func (r *Reconciler) releasesOf(w *workload.Workload) ([]*v1alpha1.ChangeWorkload, error) {
	all, err := r.lister.ChangeWorkloads(w.Namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list ChangeWorkloads: %w", err)
	}
	return slices.DeleteFunc(all, func(c *v1alpha1.ChangeWorkload) bool { return c.Spec.WorkloadRef.UID != w.UID }), nil
}
