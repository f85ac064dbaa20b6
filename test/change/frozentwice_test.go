//go:build controlplane

package change

import (
	"fmt"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestEachFreezeWithTheSameValueHasItsOwnRepair(t *testing.T) {
	t.Parallel()
	w := newFixture(t).create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated))
	w.awaitSaved(t, 1)
	for attempt := int64(2); attempt <= 3; attempt++ {
		w.mustPatch(t, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, v1alpha1.SuspendLabel))
		w.mustPatch(t, repairOf(fmt.Sprintf("v%d", attempt)))
		w.awaitPhase(t, v1alpha1.ReleaseSuccess, attempt)
		w.awaitWorkload(t, "is not suspended any more, because of a repair", func(live *workload.Workload) bool {
			_, suspended := live.Labels[v1alpha1.SuspendLabel]
			b := v1alpha1.BypassOf(live.Annotations)
			return !suspended && b != nil && b.Kind == v1alpha1.BypassRepair && b.Attempt == attempt && b.Ended
		})
	}
}
