//go:build controlplane

package change

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// toLatest is the traffic that a GitOps tool writes at each sync.
const toLatest = `{"spec":{` + latestTraffic + `}}`

const latestTraffic = `"traffic":[{"latestRevision":true,"percent":100}]`

// andToLatest returns a patch of a release that also writes toLatest.
func andToLatest(patch string) string {
	return strings.Replace(patch, `"spec":{`, `"spec":{`+latestTraffic+`,`, 1)
}

// createJudgedBeforeTraffic creates the Service web in a namespace with the setting, and a MetricCheck,
// so that batches wait for a verdict. Its first release succeeds.
func createJudgedBeforeTraffic(t *testing.T) target {
	t.Helper()
	f := newFixture(t)
	if err := f.createCheck(t.Context(), 24*time.Hour, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.judgeBeforeTraffic(t.Context(), "true"); err != nil {
		t.Fatal(err)
	}
	w := f.createKnativeService(t, 1)
	w.checkTraffic(t, "")
	w.awaitCondition(t, v1alpha1.ReleaseHeld, v1alpha1.ReasonNotSuspended, "the traffic is not held. When the template was changed, one of these was the cause: (1) no Revision was Ready")
	w.writeFacts(t, 1, map[string]any{"judges": verdictOfMetrics("pass")})
	w.checkKnativeRelease(t, 1)
	return w
}

// judgeBeforeTraffic sets the annotation of the namespace.
func (f fixture) judgeBeforeTraffic(ctx context.Context, value string) error {
	_, err := f.Kube.CoreV1().Namespaces().Patch(ctx, f.namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.JudgeBeforeTrafficAnnotation, value), metav1.PatchOptions{})
	return err
}

// awaitCondition waits until a condition of the current release has a reason and a message with a text.
func (w target) awaitCondition(t *testing.T, of apis.ConditionType, reason, text string) {
	t.Helper()
	await(t, fmt.Sprintf("condition %s is %s: %s", of, reason, text), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		if cond := c.Status.GetCondition(of); cond.GetReason() != reason || !strings.Contains(cond.GetMessage(), text) {
			return fmt.Errorf("%s of attempt %d: %+v", c.Status.Phase, c.Spec.Attempt, cond)
		}
		return nil
	})
}

// awaitTraffic waits until all requests go to the latest Revision.
func (w target) awaitTraffic(t *testing.T) {
	t.Helper()
	w.awaitWorkload(t, "sends all requests to the latest Revision", func(live *workload.Workload) bool {
		return knativetraffic.Revisions{Latest: true}.Share(live.Traffic) == 100 && live.Annotations[v1alpha1.HoldAnnotation] == ""
	})
}

// passSecondBatch passes the second batch of an attempt that is still running without it.
func (w target) passSecondBatch(t *testing.T, attempt int64) {
	t.Helper()
	c := w.awaitPhase(t, v1alpha1.ReleaseRunning, attempt)
	await(t, "the second batch is passed", func(ctx context.Context) error {
		batches, err := w.batches(ctx, c)
		if err != nil || len(batches) != 2 {
			return fmt.Errorf("%d batches, %w", len(batches), err)
		}
		w.judge(t, &batches[1], "pass")
		return nil
	})
}

func TestAKnativeServiceIsJudgedBeforeItGetsTraffic(t *testing.T) {
	t.Parallel()
	w := createJudgedBeforeTraffic(t)
	good := w.revisionOf(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.checkTraffic(t, good)
	w.rollOut(t, 2)
	w.awaitCondition(t, v1alpha1.ReleaseHeld, v1alpha1.ReasonTrafficUntilJudged, "its share is at Revision "+good)
	w.mustPatch(t, toLatest)
	w.checkTraffic(t, good)
	w.mustPatch(t, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.HoldAnnotation))
	w.writeFacts(t, 2, map[string]any{"judges": verdictOfMetrics("pass")})
	w.awaitTraffic(t)
	w.passSecondBatch(t, 2)
	w.checkKnativeRelease(t, 2)

	good = w.revisionOf(t, 2)
	w.mustPatch(t, releaseOf("v3"))
	w.rollOut(t, 1)
	w.writeFacts(t, 3, map[string]any{"judges": verdictOfMetrics("fail")})
	w.awaitSuspended(t)
	w.checkTraffic(t, good)
	w.awaitCondition(t, v1alpha1.ReleaseHeld, v1alpha1.ReasonSuspended, "the traffic of the failed Revision is at Revision "+good)
	if err := w.patch(t.Context(), releaseOf("v4")); err == nil || !strings.Contains(err.Error(), "service web is suspended") {
		t.Errorf("the next release: %v", err)
	}
	w.mustPatch(t, repairOf("v4"))
	w.checkTraffic(t, good)
	w.rollOut(t, 1)
	w.writeFacts(t, 4, map[string]any{"judges": verdictOfMetrics("pass")})
	w.checkKnativeRelease(t, 4)
	w.checkTraffic(t, "")
}

func TestAReleaseDuringAHoldUntilJudgedContinuesIt(t *testing.T) {
	t.Parallel()
	w := createJudgedBeforeTraffic(t)
	good := w.revisionOf(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	w.awaitBatch(t, 2)
	w.mustPatch(t, andToLatest(releaseOf("v3")))
	w.checkTraffic(t, good)
	w.rollOut(t, 1)
	w.writeFacts(t, 3, map[string]any{"judges": verdictOfMetrics("pass")})
	w.checkKnativeRelease(t, 3)
	w.checkTraffic(t, "")

	// The owner of the Service does not want to wait.
	good = w.revisionOf(t, 3)
	w.mustPatch(t, releaseOf("v4"))
	w.rollOut(t, 1)
	w.checkTraffic(t, good)
	w.mustPatch(t, fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"}}}`, v1alpha1.JudgeBeforeTrafficAnnotation))
	w.awaitTraffic(t)
	w.mustPatch(t, releaseOf("v5"))
	w.checkTraffic(t, "")
}

func TestASplitOfAPersonDuringAHoldUntilJudgedStays(t *testing.T) {
	t.Parallel()
	w := createJudgedBeforeTraffic(t)
	good := w.revisionOf(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	w.mustPatch(t, `{"spec":{"traffic":[{"latestRevision":true,"percent":30},{"revisionName":"`+good+`","percent":70}]}}`)
	w.writeFacts(t, 2, map[string]any{"judges": verdictOfMetrics("pass")})
	w.checkKnativeRelease(t, 2)
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if share := (knativetraffic.Revisions{Names: []string{good}}).Share(live.Traffic); share != 70 {
		t.Errorf("traffic %v", live.Traffic)
	}
}

func TestARevisionWithoutTrafficThatScaledToZeroWaitsToBeJudged(t *testing.T) {
	t.Parallel()
	w := createJudgedBeforeTraffic(t)
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 0)
	w.awaitCondition(t, apis.ConditionSucceeded, v1alpha1.ReasonScaledToZero, "a request to the address of its tag")
	w.checkTraffic(t, w.revisionOf(t, 1))
	w.scaleDeployments(t, w.revisionOf(t, 2)+"-deployment", 1)
	w.awaitBatch(t, 2)
	// The autoscaler deletes the pod before its verdict.
	w.scaleDeployments(t, w.revisionOf(t, 2)+"-deployment", 0)
	w.awaitAvailable(t, w.revisionOf(t, 2)+"-deployment", 0)
	w.checkTraffic(t, w.revisionOf(t, 1))
	w.writeFacts(t, 2, map[string]any{"judges": verdictOfMetrics("pass")})
	w.checkKnativeRelease(t, 2)
	w.checkTraffic(t, "")
}

// A change of scale creates a further Revision, whose pods the autoscaler deletes before a batch forms.
func TestAFurtherRevisionThatScaledToZeroWaitsToBeJudged(t *testing.T) {
	t.Parallel()
	w := createJudgedBeforeTraffic(t)
	good := w.revisionOf(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	w.rollOut(t, 1)
	w.awaitBatch(t, 2)
	w.mustPatch(t, `{"spec":{"template":{"metadata":{"annotations":{"autoscaling.knative.dev/max-scale":"3"}}}}}`)
	w.rollOut(t, 0)
	w.writeFacts(t, 2, map[string]any{"judges": verdictOfMetrics("pass")})
	w.awaitCondition(t, apis.ConditionSucceeded, v1alpha1.ReasonScaledToZero, "1 pods passed")
	w.awaitCondition(t, v1alpha1.ReleaseHeld, v1alpha1.ReasonTrafficUntilJudged, "its share is at Revision "+good)
	w.checkTraffic(t, good)
	w.scaleDeployments(t, w.revisionOf(t, 2)+"-deployment", 1)
	w.passSecondBatch(t, 2)
	w.checkKnativeRelease(t, 2)
	w.checkTraffic(t, "")
}

func TestAWrongValueOfJudgeBeforeTrafficIsDenied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.createKnativeService(t, 1)
	of := map[string]func(value string) error{
		"namespace": func(value string) error { return f.judgeBeforeTraffic(t.Context(), value) },
		"Service": func(value string) error {
			return w.patch(t.Context(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.JudgeBeforeTrafficAnnotation, value))
		},
	}
	for name, set := range of {
		for _, value := range []string{"true", "false"} {
			if err := set(value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		const want = `annotation breakwater.dev/judge-before-traffic is "True": set "true"`
		if err := set("True"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A person has suspended the Service: no Revision has failed.
func TestARepairOfAFrozenKnativeServiceIsJudgedBeforeItGetsTraffic(t *testing.T) {
	t.Parallel()
	w := createJudgedBeforeTraffic(t)
	good := w.revisionOf(t, 1)
	w.freezeAndRepair(t, 2)
	w.checkTraffic(t, good)
	w.rollOut(t, 1)
	w.awaitCondition(t, v1alpha1.ReleaseHeld, v1alpha1.ReasonTrafficUntilJudged, "its share is at Revision "+good)
	w.mustPatch(t, toLatest)
	w.checkTraffic(t, good)
	w.writeFacts(t, 2, map[string]any{"judges": verdictOfMetrics("pass")})
	w.awaitTraffic(t)
	w.checkKnativeRelease(t, 2)

	good = w.revisionOf(t, 2)
	w.freezeAndRepair(t, 3)
	w.rollOut(t, 1)
	w.checkTraffic(t, good)
	w.writeFacts(t, 3, map[string]any{"judges": verdictOfMetrics("fail")})
	w.awaitCondition(t, v1alpha1.ReleaseHeld, v1alpha1.ReasonSuspended, "the traffic of the failed Revision is at Revision "+good)
	w.checkTraffic(t, good)
}

// freezeAndRepair suspends the Service, as a person does, and releases a repair, which is the attempt.
func (w target) freezeAndRepair(t *testing.T, attempt int64) {
	t.Helper()
	w.mustPatch(t, fmt.Sprintf(`{"metadata":{"labels":{%q:"%d"}}}`, v1alpha1.SuspendLabel, attempt))
	w.mustPatch(t, repairOf(fmt.Sprintf("v%d", attempt)))
}
