//go:build controlplane

package change

import (
	"fmt"
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// removeBypass removes the bypass annotation, as a person does to release another repair, and fails unless
// the record of the suspension stays.
func (w target) removeBypass(t *testing.T) {
	t.Helper()
	w.mustPatch(t, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.BypassAnnotation))
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b := v1alpha1.CurrentBypassOf(live.Labels, live.Annotations); b == nil || !b.AnotherRepair {
		t.Fatalf("labels %v, annotations %v", live.Labels, live.Annotations)
	}
}

// awaitHoldOf waits until the workload is held for an attempt, and returns the hold.
func (w target) awaitHoldOf(t *testing.T, attempt int64) *v1alpha1.Hold {
	t.Helper()
	var hold *v1alpha1.Hold
	w.awaitWorkload(t, fmt.Sprintf("is held for attempt %d", attempt), func(live *workload.Workload) bool {
		hold = v1alpha1.HoldOf(live.Annotations)
		return hold != nil && hold.Attempt == attempt && hold.Suspends() && live.Annotations[v1alpha1.BypassAnnotation] == ""
	})
	return hold
}

func TestTheTrafficBeforeAFailOutlivesTheBypassAnnotation(t *testing.T) {
	t.Parallel()
	w := createJudgedBeforeTraffic(t)
	good := w.revisionOf(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	w.writeFacts(t, 2, map[string]any{"judges": verdictOfMetrics("fail")})
	w.awaitHoldOf(t, 2)

	w.mustPatch(t, repairOf("v3"))
	w.removeBypass(t)
	w.awaitCondition(t, v1alpha1.ReleaseHeld, v1alpha1.ReasonTrafficUntilJudged, "only after a repair or a rollback succeeded; its share is at Revision "+good)
	// The latest Revision that is Ready is the failed one.
	w.mustPatch(t, andToLatest(repairOf("v4")))
	w.checkTraffic(t, good)

	w.rollOut(t, 1)
	w.removeBypass(t)
	w.writeFacts(t, 4, map[string]any{"judges": verdictOfMetrics("fail")})
	hold := w.awaitHoldOf(t, 4)
	if hold.Freeze != "" || (knativetraffic.Revisions{Latest: true}).Share(hold.Traffic.Former) != 100 {
		t.Errorf("held with %+v, %+v", hold, hold.Traffic)
	}
	w.checkTraffic(t, good)

	w.mustPatch(t, repairOf("v5"))
	w.rollOut(t, 1)
	w.removeBypass(t)
	w.checkTraffic(t, good)
	w.writeFacts(t, 5, map[string]any{"judges": verdictOfMetrics("pass")})
	w.checkKnativeRelease(t, 5)
	w.checkTraffic(t, "")
	w.checkNoBypass(t)
}

func TestAFreezeOutlivesTheBypassAnnotation(t *testing.T) {
	t.Parallel()
	w := newFixture(t).create(t, workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(1)))
	w.awaitSaved(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	batch := w.awaitBatch(t, 2)
	w.mustPatch(t, fmt.Sprintf(`{"metadata":{"labels":{%q:"holidays"}}}`, v1alpha1.SuspendLabel))
	w.judge(t, batch, "unpass")
	w.awaitHoldOf(t, 2)

	w.mustPatch(t, repairOf("v3"))
	w.removeBypass(t)
	w.judge(t, w.awaitBatch(t, 3), "unpass")
	if hold := w.awaitHoldOf(t, 3); hold.Freeze != "holidays" {
		t.Errorf("held with %+v", hold)
	}
	w.mustPatch(t, repairOf("v4"))
	w.removeBypass(t)
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 4)
	w.awaitWorkload(t, "is suspended by the person", func(live *workload.Workload) bool {
		return live.Labels[v1alpha1.SuspendLabel] == "holidays" && !live.PausedOrHeld()
	})
	w.checkNoBypass(t)
}

func (w target) checkNoBypass(t *testing.T) {
	t.Helper()
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if bypass, ok := live.Annotations[v1alpha1.BypassAnnotation]; ok {
		t.Errorf("bypass %s", bypass)
	}
}
