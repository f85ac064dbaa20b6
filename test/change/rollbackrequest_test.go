//go:build controlplane

package change

import (
	"context"
	"fmt"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The request is an annotation of the workload, which the controller watches. Nothing else
// changes in this test.
func TestARequestedRollbackIsExecutedOrDropped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.createHeld(t)

	w.requestRollback(t, 1)
	w.awaitEvent(t, v1alpha1.ReasonRollbackDropped)
	w.awaitWorkload(t, "has no request", func(live *workload.Workload) bool { return live.Annotations[v1alpha1.RollbackRequestAnnotation] == "" })
	if c, err := w.release(t.Context()); err != nil || c.Spec.Attempt != 2 {
		t.Errorf("a request for an earlier attempt was executed: %+v, %v", c, err)
	}

	w.requestRollback(t, 2)
	await(t, "the template is rolled back", func(ctx context.Context) error {
		live, err := w.get(ctx)
		if err != nil {
			return err
		}
		record := v1alpha1.RollbackOf(live.Annotations)
		if record == nil || record.Kind != v1alpha1.RollbackRequested || live.Template.Annotations[builder.Marker] != "v1" {
			return fmt.Errorf("the template is %s, the last rollback %+v", live.Template.Annotations[builder.Marker], record)
		}
		return nil
	})
	w.checkComplete(t, "v1", 3)
}
