//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// errorRate is the message of a failed rule.
const errorRate = "error rate is 7 per cent, 1 is allowed"

// failed is a fail with a rule and its message.
func failed() double.Behaviour {
	return double.Behaviour{Verdict: "fail", Rules: []double.Rule{{
		ExternalRuleID: "r1", ControlKey: "error-rate", Status: "SUCCESS", Verdict: "FAIL", Msg: errorRate,
		RiskLevel: "HIGH", Name: "error rate", Owner: "sre",
	}}}
}

// batch matches the check of one batch, counted from 1, at a stage.
func batch(number int64, stage double.Stage) double.Match {
	number-- // the server counts from 0
	return double.Match{Step: "BATCH", BatchNo: &number, Stage: stage}
}

// setChecks sets the double's answers to checks of this namespace.
func (n *namespace) setChecks(t *testing.T, rules ...double.CheckRule) {
	t.Helper()
	if err := n.double.SetChecks(t.Context(), n.name, rules...); err != nil {
		t.Fatal(err)
	}
}

// passingRelease is judged pod by pod and keeps one ChangeWorkload and its
// ChangePods.
func passingRelease(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 10, builder.Simulated))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.release(t, "web", "v2")
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)

	if got := c.Status.Counts; got != (v1alpha1.PodCounts{Pods: 10, Passed: 10}) {
		t.Errorf("counts are %+v, want 10 judged and passed pods", got)
	}
	for _, want := range []apis.ConditionType{apis.ConditionSucceeded, v1alpha1.ReleaseJudged, v1alpha1.ReleaseOrderAccepted} {
		if cond := c.Status.GetCondition(want); !cond.IsTrue() {
			t.Errorf("condition %s is %+v, want True", want, cond)
		}
	}
	await(t, shortTimeout, "one ChangeWorkload and its 10 ChangePods exist", func(ctx context.Context) error {
		workloads, err := n.change.ChangeWorkloads(n.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pods, err := n.change.ChangePods(n.name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(workloads.Items) != 1 || len(pods.Items) != 10 {
			return fmt.Errorf("%d ChangeWorkloads, %d ChangePods", len(workloads.Items), len(pods.Items))
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if !metav1.IsControlledBy(p, &workloads.Items[0]) || len(p.Spec.PodInfos) != 1 ||
				p.Status.Message != string(v1alpha1.BatchPostFinish) {
				return fmt.Errorf("%s: owner %v, %d pods, message %q", p.Name, p.OwnerReferences, len(p.Spec.PodInfos), p.Status.Message)
			}
		}
		return nil
	})
	n.awaitClaims(t, shortTimeout, "web")
	n.run(t, "wait", "changeworkload", c.Name, "--for=condition=Succeeded", "--timeout=5s")
	n.checkOrder(t, c)
}

// checkOrder checks the calls to the server for a release that passed: one order, and a start and a
// finish of the order and of each of its ten batches. A call is repeated only if its intent says so: its
// answer was not stored within total-deadline, as on a machine that is too busy.
func (n *namespace) checkOrder(t *testing.T, c *v1alpha1.ChangeWorkload) {
	t.Helper()
	log, err := n.double.Log(t.Context(), n.name)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int32{}
	for _, call := range log.Calls {
		if call.Order == c.Spec.OrderID && call.Code == "000" {
			calls[call.Action]++
		}
	}
	const open, start, startBatch, finish = "submitChangeExecOrder", "submitChangeExecOrderStartNotify", "submitChangeExecBatchStartNotify", "submitChangeFinishNotify"
	intents := map[string]int32{open: 1}
	count := func(start string, submissions []v1alpha1.Submission) {
		for _, s := range submissions {
			action := finish
			if s.Stage == v1alpha1.StagePre {
				action = start
			}
			intents[action] += s.Attempts
		}
	}
	live, err := n.change.ChangeWorkloads(n.name).Get(t.Context(), c.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count(start, live.Status.Order.Submissions)
	batches, err := n.change.ChangePods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range batches.Items {
		count(startBatch, batches.Items[i].Status.Submissions)
	}
	for action, want := range map[string]int32{open: 1, start: 1, startBatch: 10, finish: 11} {
		if calls[action] < want || calls[action] > intents[action] {
			t.Errorf("%d successful calls of %s, want %d, and no more than the %d intents", calls[action], action, want, intents[action])
		}
	}
}

const (
	// failingSize is the number of replicas of failingRelease.
	failingSize = 6
	// failingPace is the time in seconds that a pod of failingRelease is Ready before the next one is replaced. The
	// rollout takes 48 s, so that it is not complete when the fail arrives.
	failingPace = 8
)

// failingRelease is held until it is repaired.
func failingRelease(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", failingSize, builder.Simulated, builder.Paced(failingPace)))
	good := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.setChecks(t, double.CheckRule{Match: batch(3, double.Post), Then: failed()})
	n.release(t, "web", "v2")
	bad := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitDeployment(t, shortTimeout, "web", "is held", func(d *appsv1.Deployment) bool { return isSuspended(d) && d.Spec.Paused })
	n.awaitEvent(t, "web", v1alpha1.ReasonSuspended, bad.Name)

	third := n.awaitBatch(t, shortTimeout, "web", 3, "is done", isDone)
	failedPods := bad.Status.DefenseCheckFailPods
	if len(failedPods) != 1 || failedPods[0].Pod != third.Spec.PodInfos[0].Pod || !strings.Contains(failedPods[0].Message, errorRate) {
		t.Errorf("failed pods are %+v, want %s with %s", failedPods, third.Spec.PodInfos[0].Pod, errorRate)
	}
	n.checkStopped(t)

	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	n.awaitEvent(t, "web", v1alpha1.ReasonReleaseDenied, "is suspended")
	n.setChecks(t)
	n.repair(t, "web", "v3")
	n.unpace(t, "web")
	n.awaitEvent(t, "web", v1alpha1.ReasonRepairAdmitted, "repair by "+n.run(t, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"))
	repaired := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	n.awaitClaims(t, shortTimeout, "web")
	await(t, shortTimeout, "only the ChangeWorkload of the repair exists", func(ctx context.Context) error {
		list, err := n.change.ChangeWorkloads(n.name).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != repaired.Name {
			return fmt.Errorf("%d ChangeWorkloads; that of the first version is %s (%w)", len(list.Items), good.Name, err)
		}
		return nil
	})
	n.checkStdout(t, "deployment.apps/web patched\n", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
}

// checkStopped checks that a held rollout has ended before all pods are updated, and that no pod is
// replaced any more.
func (n *namespace) checkStopped(t *testing.T) {
	t.Helper()
	await(t, shortTimeout, "the controllers have done what they began before the hold", n.settled)
	n.checkNoPodReplaced(t, "the pods of a held rollout", failingPace)
	if d := n.deployment(t, "web"); !d.Spec.Paused || d.Status.UpdatedReplicas >= failingSize {
		t.Errorf("%d of %d pods are updated and paused is %t", d.Status.UpdatedReplicas, failingSize, d.Spec.Paused)
	}
}

// settled returns nil if the controllers have seen the Deployment and its ReplicaSets, and have
// created and deleted their pods.
func (n *namespace) settled(ctx context.Context) error {
	d, err := n.kube.AppsV1().Deployments(n.name).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Generation {
		return fmt.Errorf("generation %d of the Deployment was observed, want %d", d.Status.ObservedGeneration, d.Generation)
	}
	sets, err := n.kube.AppsV1().ReplicaSets(n.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var want int32
	for i := range sets.Items {
		s := &sets.Items[i]
		if s.Status.ObservedGeneration < s.Generation || s.Status.Replicas != *s.Spec.Replicas {
			return fmt.Errorf("ReplicaSet %s has %d of %d pods", s.Name, s.Status.Replicas, *s.Spec.Replicas)
		}
		want += *s.Spec.Replicas
	}
	pods, err := n.kube.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{})
	if err == nil && len(pods.Items) != int(want) {
		err = fmt.Errorf("%d pods, want %d", len(pods.Items), want)
	}
	return err
}

// failInStagePre suspends the Deployment like a fail in stage POST.
func failInStagePre(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: batch(2, double.Pre), Then: failed()})
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
	if len(c.Status.DefenseCheckFailPods) != 1 {
		t.Errorf("%d pods failed, want 1", len(c.Status.DefenseCheckFailPods))
	}
	p := n.awaitBatch(t, shortTimeout, "web", 2, "is done", isDone)
	if p.Status.Message != string(v1alpha1.BatchPreFailed) {
		t.Errorf("the message of the batch is %q, want PreFailed", p.Status.Message)
	}
}

// unjudgedBatches pass, because no-verdict is Pass, and are counted as
// unjudged.
func unjudgedBatches(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t,
		double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Verdict: "inconc"}},
		double.CheckRule{Match: batch(4, double.Post), Then: double.Behaviour{Verdict: "unknown"}},
	)
	n.create(t, builder.Deployment("web", 5, builder.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if got := c.Status.Counts; got != (v1alpha1.PodCounts{Pods: 5, Passed: 5, Unjudged: 2}) {
		t.Errorf("counts are %+v, want 5 passed pods, 2 of them unjudged", got)
	}
	if cond := c.Status.GetCondition(v1alpha1.ReleaseJudged); !cond.IsFalse() {
		t.Errorf("condition Judged is %+v, want False", cond)
	}
}

// earlyVerdict arrives before the response of the call that submits the check.
func earlyVerdict(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	earlyFail := failed()
	earlyFail.Early = true
	n.setChecks(t,
		double.CheckRule{Match: double.Match{Stage: double.Pre}, Then: double.Behaviour{Early: true}},
		double.CheckRule{Match: batch(2, double.Post), Then: earlyFail},
	)
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitPassed(t, "web", 2)
	if got := len(c.Status.DefenseCheckFailPods); got != 1 {
		t.Errorf("%d pods failed, want 1", got)
	}
}

// repeatedVerdict counts once, and a verdict for an unknown order node does not
// count.
func repeatedVerdict(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	unknown := failed()
	unknown.UnknownNode = true
	unknown.Copies = 2
	n.setChecks(t,
		double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Copies: 3, CopyEvery: metav1.Duration{Duration: 2 * time.Second}}},
		double.CheckRule{Match: batch(2, double.Post), Then: unknown},
	)
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	first := n.awaitBatch(t, rolloutTimeout, "web", 1, "is done", isDone)
	n.awaitPassed(t, "web", 2)
	n.awaitCallbacks(t, "fail", 2)
	await(t, rolloutTimeout, "the copies of the pass of batch 1 are accepted", func(ctx context.Context) error {
		log, err := n.double.Log(ctx, n.name)
		if err != nil {
			return err
		}
		accepted := 0
		for _, c := range log.Callbacks {
			if c.Node == first.Status.ChangePodID && c.Stage == double.Post && c.Status == http.StatusOK {
				accepted++
			}
		}
		if accepted < 3 {
			return fmt.Errorf("%d callbacks of node %s were accepted", accepted, first.Status.ChangePodID)
		}
		return nil
	})
	second := n.awaitBatch(t, shortTimeout, "web", 2, "exists", exists)
	if v := second.Status.VerdictOf(v1alpha1.StagePost); v != nil {
		t.Errorf("the batch has the verdict of an unknown order node: %+v", v)
	}
	if d := n.deployment(t, "web"); isSuspended(d) {
		t.Error("a verdict for an unknown order node suspended the Deployment")
	}
	// When a later verdict has ended the release, the earlier ones were applied.
	n.sendPass(t, second.Status.ChangePodID)
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	last := n.awaitBatch(t, shortTimeout, "web", 1, "exists", exists)
	if diff := cmp.Diff(first.Status.Verdicts, last.Status.Verdicts); diff != "" {
		t.Errorf("the copies of a pass changed the verdicts (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(first.Status.PodResults, last.Status.PodResults); diff != "" {
		t.Errorf("the copies of a pass changed the results (-before +after):\n%s", diff)
	}
}

// awaitPassed waits until a number of pods have passed.
func (n *namespace) awaitPassed(t *testing.T, name string, passed int32) {
	t.Helper()
	await(t, rolloutTimeout, fmt.Sprintf("%d pods of %s have passed", passed, name), func(ctx context.Context) error {
		c, err := n.current(ctx, name)
		if err != nil {
			return err
		}
		if c.Status.Counts.Passed != passed {
			return fmt.Errorf("%q, %+v", c.Status.Phase, c.Status.Counts)
		}
		return nil
	})
}

// awaitCallbacks waits until the double has sent a POST verdict a number of
// times, and returns the first callback.
func (n *namespace) awaitCallbacks(t *testing.T, verdict string, times int) double.CallbackEntry {
	t.Helper()
	var first double.CallbackEntry
	await(t, rolloutTimeout, fmt.Sprintf("the double has sent %q %d times", verdict, times), func(ctx context.Context) error {
		log, err := n.double.Log(ctx, n.name)
		if err != nil {
			return err
		}
		sent := 0
		for _, c := range log.Callbacks {
			if c.Verdict == verdict && c.Stage == double.Post {
				if sent++; sent == 1 {
					first = c
				}
			}
		}
		if sent < times {
			return fmt.Errorf("sent %d times", sent)
		}
		return nil
	})
	return first
}
