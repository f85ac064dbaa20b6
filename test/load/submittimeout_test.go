//go:build controlplane

package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// submitTimeout is submit-timeout during a fault. Afterwards the default applies, so that a
// slow machine does not make the next release unjudged.
const submitTimeout = 3 * time.Second

// gate is a scheduling gate: the pod of a release becomes Ready after a test has removed it.
const gate = "test.breakwater.dev/gate"

// The order is open when the fault begins. Then the only pod of the release becomes Ready.
func TestABatchWithoutACallEndsUnjudgedAfterSubmitTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  func(fixture, *testing.T)
		policy v1alpha1.NoVerdictPolicy
		phase  v1alpha1.ReleasePhase
		reason string
	}{
		"the circuit breaker is open": {
			fixture.openBreaker, v1alpha1.NoVerdictPass, v1alpha1.ReleaseSuccess, v1alpha1.ReasonPassedUnjudged},
		"the Broker refuses every event": {
			brokerFault(refusesEvents), v1alpha1.NoVerdictHold, v1alpha1.ReleaseRunning, v1alpha1.ReasonHeldUnjudged},
		"function submit is away": {
			brokerFault(losesWakeUps), v1alpha1.NoVerdictFail, v1alpha1.ReleaseSuspend, v1alpha1.ReasonFailedUnjudged},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.SetConfig(t, v1alpha1.ConfigNoVerdict, string(tc.policy))
			f.create(t, builder.Deployment("web", 1, builder.Simulated, gated))
			first := f.awaitOrderStart(t)
			t.Run("during the fault", func(t *testing.T) {
				f.SetConfig(t, v1alpha1.ConfigSubmitTimeout, submitTimeout.String())
				tc.fault(f, t)
				f.openGate(t)
				f.awaitNotSubmitted(t)
				f.awaitUnjudged(t, first, tc.phase, tc.reason)
			})
			if tc.policy == v1alpha1.NoVerdictHold {
				checkJudged(t, f.awaitReleases(t, 1), 1) // a late call ends the hold
			}
			f.release(t, tc.policy == v1alpha1.NoVerdictFail)
			checkJudged(t, []v1alpha1.ChangeWorkload{f.awaitNext(t, first)}, 1)
		})
	}
}

func gated(d *appsv1.Deployment) {
	d.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
}

// awaitOrderStart waits until the server has judged the start of the only order, and returns
// the name of its release. Then no call is due until the pod is Ready.
func (f fixture) awaitOrderStart(t *testing.T) string {
	t.Helper()
	var name string
	await(t, "the order is started", func(ctx context.Context) error {
		list, err := f.Breakwater.AppV1alpha1().ChangeWorkloads(f.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || !list.Items[0].Status.OrderVerdictOf(v1alpha1.StagePre).EndsStage() {
			return fmt.Errorf("%d releases", len(list.Items))
		}
		name = list.Items[0].Name
		return nil
	})
	return name
}

// brokerFault returns a fault of the Broker, which ends with the test.
func brokerFault(fault int32) func(fixture, *testing.T) {
	return func(_ fixture, t *testing.T) {
		t.Cleanup(func() { eventBroker.fault.Store(noFault) })
		eventBroker.fault.Store(fault)
	}
}

// openBreaker makes the server answer 500, and calls it until the breaker of function submit
// is open. The pause is long: after it one call would be made. A changed configuration makes
// a new client, whose breaker is closed.
func (f fixture) openBreaker(t *testing.T) {
	t.Helper()
	t.Cleanup(server.Reset)
	f.setServer(t, `"breaker-pause":"1h"`, `"breaker-pause":null`)
	if err := server.SetScript(double.Script{Faults: []double.FaultRule{{Fault: double.Fault500}}}); err != nil {
		t.Fatal(err)
	}
	await(t, "the circuit breaker is open", func(ctx context.Context) error {
		client, config, err := submitServer.Client(ctx)
		switch {
		case err != nil:
			return err
		case config.BreakerPause != time.Hour:
			return fmt.Errorf("the pause is %s", config.BreakerPause)
		case !client.BreakerOpen():
			_, err := client.Retrieve(ctx, altershield.Retrieve{OrderID: f.namespace, NodeID: "0"})
			return fmt.Errorf("it is closed; the answer to a call is %w", err)
		}
		return nil
	})
}

// setServer sets keys of the ConfigMap of the server, and sets them again to former when the test ends.
func (f fixture) setServer(t *testing.T, keys, former string) {
	t.Helper()
	set := func(keys string) {
		if _, err := f.Kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Patch(context.WithoutCancel(t.Context()), altershield.ConfigMapName,
			types.MergePatchType, []byte(`{"data":{`+keys+`}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { set(former) })
	set(keys)
}

// openGate removes the gate of the only pod.
func (f fixture) openGate(t *testing.T) {
	t.Helper()
	pods := f.Kube.CoreV1().Pods(f.namespace)
	await(t, "the pod is scheduled", func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("%d pods", len(list.Items))
		}
		if err == nil {
			_, err = pods.Patch(ctx, list.Items[0].Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
		}
		return err
	})
}

// awaitNotSubmitted waits until the only batch is unjudged, and fails unless that is because
// no call was made for submit-timeout.
func (f fixture) awaitNotSubmitted(t *testing.T) {
	t.Helper()
	var batch *v1alpha1.ChangePod
	await(t, "the batch is unjudged", func(ctx context.Context) error {
		list, err := f.Breakwater.AppV1alpha1().ChangePods(f.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d batches", len(list.Items))
		}
		batch = &list.Items[0]
		if s := batch.Status; len(s.Submissions) > 0 || len(s.Verdicts) > 0 {
			t.Fatalf("submissions %+v, verdicts %+v, want none: the fault is not in effect", s.Submissions, s.Verdicts)
		}
		if !batch.Status.GetCondition(v1alpha1.BatchJudged).IsFalse() {
			return fmt.Errorf("phase %s, conditions %+v", batch.Status.Phase, batch.Status.Conditions)
		}
		return nil
	})
	cond := batch.Status.GetCondition(v1alpha1.BatchJudged)
	if cond.Reason != v1alpha1.ReasonNotSubmitted || !strings.Contains(cond.Message, "within "+submitTimeout.String()+" (submit-timeout)") {
		t.Errorf("condition Judged is %+v", cond)
	}
	// The first wake-up is sent after the creation. Both times are whole seconds.
	if after := cond.LastTransitionTime.Inner.Sub(batch.CreationTimestamp.Time); after < submitTimeout {
		t.Errorf("the batch ended after %s, want %s or more", after, submitTimeout)
	}
}

// awaitUnjudged waits until the release has the phase and the reason of condition Judged that
// follow from no-verdict.
func (f fixture) awaitUnjudged(t *testing.T, name string, phase v1alpha1.ReleasePhase, reason string) {
	t.Helper()
	await(t, fmt.Sprintf("the release is %s because of %s", phase, reason), func(ctx context.Context) error {
		c, err := f.Breakwater.AppV1alpha1().ChangeWorkloads(f.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cond := c.Status.GetCondition(v1alpha1.ReleaseJudged); c.Status.Phase != phase || !cond.IsFalse() || cond.Reason != reason {
			return fmt.Errorf("phase %s, condition Judged is %+v", c.Status.Phase, cond)
		}
		return nil
	})
}

// release releases another version, whose pods have no gate, if need be as a repair.
func (f fixture) release(t *testing.T, repair bool) {
	t.Helper()
	label := ""
	if repair {
		label = fmt.Sprintf(`"metadata":{"labels":{%q:"true"}},`, v1alpha1.IgnoredSuspendLabel)
	}
	patch := fmt.Appendf(nil, `{%s"spec":{"template":{"metadata":{"annotations":{%q:"v2"}},"spec":{"schedulingGates":null}}}}`, label, builder.Marker)
	if _, err := f.Kube.AppsV1().Deployments(f.namespace).Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitNext waits until the release after the first succeeds.
func (f fixture) awaitNext(t *testing.T, first string) (next v1alpha1.ChangeWorkload) {
	t.Helper()
	await(t, "the next release succeeds", func(ctx context.Context) error {
		list, err := f.Breakwater.AppV1alpha1().ChangeWorkloads(f.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if next = list.Items[i]; next.Name != first {
				if next.Status.Phase != v1alpha1.ReleaseSuccess {
					return fmt.Errorf("phase %s, conditions %+v", next.Status.Phase, next.Status.Conditions)
				}
				return nil
			}
		}
		return errors.New("it has no ChangeWorkload")
	})
	return next
}
