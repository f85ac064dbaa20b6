//go:build controlplane

package change

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The autoscaler of a Revision may add pods for as long as it runs. Each of them would wait for a
// verdict of its own here, so the release would not end.
func TestPodsThatTheAutoscalerAddsLaterAreNotJudged(t *testing.T) {
	for name, limit := range map[string]string{"the first pod": "1", "the pods of the first second": "1s"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.holdUnjudged(t)
			f.SetConfig(t, v1alpha1.ConfigRevisionPods, limit)
			w := f.createKnativeService(t, 1)
			w.judge(t, w.awaitBatch(t, 1), "pass")
			w.checkKnativeRelease(t, 1)

			w.mustPatch(t, releaseOf("v2"))
			w.rollOut(t, 1)
			batch := w.awaitBatch(t, 2)
			await(t, "the next pod comes later than the first second", func(context.Context) error {
				if since := time.Since(batch.CreationTimestamp.Time); since < 3*time.Second {
					return fmt.Errorf("the first batch was created %s ago", since)
				}
				return nil
			})
			w.scaleDeployments(t, w.revisionOf(t, 2)+"-deployment", 3)
			await(t, "the status counts the later pods", func(ctx context.Context) error {
				c, err := w.release(ctx)
				if err != nil {
					return err
				}
				cond := c.Status.GetCondition(apis.ConditionSucceeded)
				if c.Status.Phase != v1alpha1.ReleaseRunning || !strings.Contains(cond.GetMessage(), "2 later ones are not judged") {
					return fmt.Errorf("%s: %+v, %+v", c.Status.Phase, cond, c.Status.Counts)
				}
				return nil
			})
			w.judge(t, batch, "pass")
			w.checkKnativeRelease(t, 2)
			c := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)
			if batches, err := w.batches(t.Context(), c); err != nil || len(batches) != 1 || c.Status.Counts.Passed != 1 {
				t.Errorf("%d batches, %v, %+v", len(batches), err, c.Status.Counts)
			}
		})
	}
}
