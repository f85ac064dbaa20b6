//go:build controlplane

package change

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// The tests are not parallel, because the others need the controller.
func TestANewControllerMovesTheTrafficOfAStoredFail(t *testing.T) {
	w := newFixture(t).createKnativeService(t, 1)
	w.failWhileTheControllerStops(t, func(*v1alpha1.ChangeWorkload) {
		w.checkTraffic(t, "")
		if live, err := w.get(t.Context()); err != nil || live.Labels[v1alpha1.SuspendLabel] != "" {
			t.Errorf("suspended before the restart: %v, %v", live.Labels, err)
		}
	}, controlplane.StopPoint{})
}

func TestANewControllerCompletesAHoldWhoseTrafficMoved(t *testing.T) {
	w := newFixture(t).createKnativeService(t, 1)
	w.failWhileTheControllerStops(t, func(c *v1alpha1.ChangeWorkload) {
		w.checkTraffic(t, w.revisionOf(t, 1))
		if c.Status.Phase == v1alpha1.ReleaseSuspend {
			t.Errorf("the status says so before the restart: %+v", c.Status)
		}
	}, controlplane.StopPoint{Executed: true})
}

// failWhileTheControllerStops fails the second Revision. The controller is stopped when it moves
// the traffic, and another one completes that. A repair ends what both have done.
func (w target) failWhileTheControllerStops(t *testing.T, checkStopped func(*v1alpha1.ChangeWorkload), at controlplane.StopPoint) {
	t.Helper()
	w.checkKnativeRelease(t, 1)
	good := w.revisionOf(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	complete := w.startRollOut(t, 1)
	batch := w.awaitBatch(t, 2)
	at.Reached = func(kind controlplane.Request, body []byte) bool {
		return kind.Namespace == w.namespace && kind.Verb == "patch" && kind.Resource == "services" && bytes.Contains(body, []byte("/spec/traffic"))
	}
	awaitEnd := plane.StopAt(t, change.Component, at)
	w.judge(t, batch, "unpass")
	await(t, "the controller ends", awaitEnd)
	restart := sync.OnceFunc(func() {
		if err := plane.Run(change.Component, change.Controllers(&broker.SharedSender{})); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(restart)
	stored, err := w.Breakwater.AppV1alpha1().ChangePods(w.namespace).Get(t.Context(), batch.Name, metav1.GetOptions{})
	if err != nil || len(stored.Status.PodResults) == 0 {
		t.Fatalf("the fail is not stored: %+v, %v", stored.Status, err)
	}
	c, err := w.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkStopped(c)

	began := time.Now()
	restart()
	await(t, "the traffic is at the good Revision", func(ctx context.Context) error { return w.trafficAt(ctx, good) })
	t.Logf("traffic is back %s after the start of a new controller", time.Since(began).Round(time.Millisecond))
	w.checkFailedRevision(t, w.revisionOf(t, 2), good)
	complete()
	w.mustPatch(t, repairOf("v3"))
	w.rollOut(t, 1)
	w.checkKnativeRelease(t, 3)
	w.checkTraffic(t, "")
	if live, err := w.get(t.Context()); err != nil || !knativetraffic.Same(latestRevision, live.Traffic) {
		t.Errorf("traffic %v, want that before the fail, %v", live.Traffic, err)
	}
}
