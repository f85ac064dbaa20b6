//go:build controlplane

package change

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// repairOn is a repair whose pods need a node with the label missing.
func repairOn(marker, missing string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}},
		"spec":{"template":{"metadata":{"annotations":{%q:%q}},"spec":{"nodeSelector":{"missing":%s}}}}}`,
		v1alpha1.IgnoredSuspendLabel, builder.Marker, marker, missing)
}

func TestARepairThatTimesOutEndsNoSuspensionAndTheNextOneDoes(t *testing.T) {
	f := newFixture(t)
	f.SetConfig(t, v1alpha1.ConfigReleaseTimeout, "5s")
	w := f.create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(2)))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	w.awaitHeld(t)

	w.mustPatch(t, repairOn("v3", `"node"`))
	c := w.awaitPhase(t, v1alpha1.ReleaseFailed, 3)
	if cond := c.Status.GetCondition(apis.ConditionSucceeded); !cond.IsFalse() || cond.Reason != v1alpha1.ReasonReleaseTimedOut {
		t.Errorf("condition Succeeded is %+v", cond)
	}
	w.awaitEvent(t, v1alpha1.ReasonReleaseTimedOut)
	live, err := w.get(t.Context())
	if err != nil || live.Labels[v1alpha1.SuspendLabel] == "" {
		t.Errorf("the timeout ended the suspension: labels %v, %v", live.Labels, err)
	}

	w.mustPatch(t, `{"metadata":{"annotations":{"`+v1alpha1.BypassAnnotation+`":null}}}`)
	w.mustPatch(t, repairOn("v4", "null"))
	w.checkComplete(t, "v4", 4)
}

// awaitEvent waits for an Event of the workload.
func (w target) awaitEvent(t *testing.T, reason string) {
	t.Helper()
	await(t, "Event "+reason, func(ctx context.Context) error {
		list, err := w.Kube.CoreV1().Events(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
			"reason": reason, "involvedObject.kind": w.kind.Kind,
		}.String()})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("no Event")
		}
		return err
	})
}
