//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// delayed returns the behavior with a delay.
func delayed(d time.Duration, b double.Behaviour) double.Behaviour {
	b.Delay.Duration = d
	return b
}

// hasPostSubmission reports whether the finish of a batch is submitted, or
// about to be submitted, to the server.
func hasPostSubmission(p *v1alpha1.ChangePod) bool {
	return p.Status.SubmissionOf(v1alpha1.StagePost) != nil
}

// awaitsPostVerdict reports whether the server has answered the finish of a
// batch, so that only the POST verdict is missing.
func awaitsPostVerdict(p *v1alpha1.ChangePod) bool {
	s := p.Status.SubmissionOf(v1alpha1.StagePost)
	return s != nil && s.AnsweredTime != nil
}

// lostEvents: the channel loses its events twice, during a release and before a
// fail arrives. Specs beside it kill other components, so each wait includes a restart.
func lostEvents(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 6, builder.Simulated, builder.Paced(2)))
	n.awaitPhase(t, recoveryTimeout, "web", v1alpha1.ReleaseSuccess)
	n.setChecks(t, double.CheckRule{Match: batch(5, double.Post), Then: delayed(2*time.Second, failed())})
	n.release(t, "web", "v2")
	n.awaitBatch(t, recoveryTimeout, "web", 2, "exists", exists)
	e.kill(t, dispatcher())
	n.awaitBatch(t, recoveryTimeout, "web", 5, "is submitted for its POST check", hasPostSubmission)
	e.kill(t, dispatcher())

	n.awaitFailedBatch(t, recoveryTimeout, 5)
	n.setChecks(t)
	n.repair(t, "web", "v3")
	n.awaitPhase(t, recoveryTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	n.awaitClaims(t, shortTimeout, "web")
}

// awaitFailedBatch waits until web is suspended because of exactly one batch,
// and each pod is judged.
func (n *namespace) awaitFailedBatch(t *testing.T, within time.Duration, index int) {
	t.Helper()
	n.awaitPhase(t, within, "web", v1alpha1.ReleaseSuspend)
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
	n.awaitClaims(t, within, "web")
	p := n.awaitBatch(t, within, "web", index, "is done", isDone)
	await(t, within, "every pod is judged", func(ctx context.Context) error {
		c, err := n.current(ctx, "web")
		if err != nil {
			return err
		}
		if got := c.Status.Counts; got.Failed != 1 || got.Passed != got.Pods-1 || got.Unjudged != 0 {
			return fmt.Errorf("%+v", got)
		}
		if got := c.Status.DefenseCheckFailPods[0].Pod; got != p.Spec.PodInfos[0].Pod {
			return fmt.Errorf("pod %s failed, want that of %s", got, p.Name)
		}
		return nil
	})
}

// killedComponent: killing a component during a release only delays its end. Like the real
// server, the double sends the fail once. A component that carries verdicts is killed
// when the double has the answer to its callback: the verdict must be safe then.
// The other components are killed while the batch is submitted.
func killedComponent(p target) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		n.setChecks(t,
			double.CheckRule{Match: batch(4, double.Post), Then: delayed(4*time.Second, failed())},
			double.CheckRule{Then: delayed(time.Second, double.Behaviour{})},
		)
		n.create(t, builder.Deployment("web", 6, builder.Simulated))
		n.awaitBatch(t, recoveryTimeout, "web", 4, "is submitted for its POST check", hasPostSubmission)
		if p == function("callback") || p == function("verdict") {
			if sent := n.awaitCallbacks(t, "fail", 1); sent.Status != http.StatusOK {
				t.Errorf("the callback was answered %d, want 200", sent.Status)
			}
		}
		e.kill(t, p)
		n.awaitFailedBatch(t, recoveryTimeout, 4)
		n.setChecks(t)
		await(t, recoveryTimeout, "the repair is admitted", func(ctx context.Context) error { // the killed component may be the webhook
			return n.patch(ctx, "web", repairOf("v2"))
		})
		n.awaitPhase(t, recoveryTimeout, "web", v1alpha1.ReleaseSuccess)
		n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
		n.awaitClaims(t, shortTimeout, "web")
	}
}

// unsentVerdict is the POST verdict for which the last pod of a release waits. The double does not
// send it.
type unsentVerdict struct {
	*namespace
	batch *v1alpha1.ChangePod
}

func (e *environment) unsentVerdict(t *testing.T) unsentVerdict {
	t.Helper()
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: batch(2, double.Post), Then: double.Behaviour{Never: true}})
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	waiting := n.awaitBatch(t, rolloutTimeout, "web", 2, "waits for its POST verdict", awaitsPostVerdict)
	n.awaitPassed(t, "web", 2)
	return unsentVerdict{n, waiting}
}

// fail sends the fail once, and waits until it is stored.
func (v unsentVerdict) fail(t *testing.T) {
	t.Helper()
	c, err := v.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if status := post(t, callback(t, c.Spec.OrderID, v.batch.Status.ChangePodID, "fail"), serverdouble.Token); status != http.StatusOK {
		t.Errorf("callback status %d, want 200: the verdict is stored", status)
	}
	took := time.Since(began)
	t.Logf("callback answered after %s", took.Round(time.Millisecond))
	if took > callbackTimeout {
		t.Errorf("callback answered after %s; the server waits for %s", took, callbackTimeout)
	}
	await(t, shortTimeout, "the verdict is stored in the inbox, or applied", func(ctx context.Context) error {
		c, err := v.current(ctx, "web")
		if err != nil {
			return err
		}
		if len(c.Status.Inbox) == 0 && c.Status.Counts.Failed == 0 {
			return fmt.Errorf("the inbox is empty: %+v", c.Status.Counts)
		}
		return nil
	})
}

// awaitFailed waits until the fail is applied.
func (v unsentVerdict) awaitFailed(t *testing.T) {
	t.Helper()
	v.awaitFailedBatch(t, recoveryTimeout, 2)
	await(t, rolloutTimeout, "the inbox is empty", func(ctx context.Context) error {
		c, err := v.current(ctx, "web")
		if err == nil && len(c.Status.Inbox) > 0 {
			err = fmt.Errorf("%d verdicts", len(c.Status.Inbox))
		}
		return err
	})
}

// verdictsWithoutBroker are received while the Broker is down: of a Deployment, and of the Knative
// Service of a namespace. The Service of the other namespace is judged by a person.
func verdictsWithoutBroker(received, byHand *namespace) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		service, judged := received.releaseBadRevision(t), byHand.releaseBadRevision(t)
		v := e.unsentVerdict(t)
		service.awaitBatch(t)
		judged.awaitBatch(t)
		restore := stopBroker(t, e)
		v.fail(t)
		service.fail(t)
		stays := judged.failWithoutBroker(t)
		restore()
		judged.startRepair(t)
		service.checkHeld(t)
		service.startRepair(t)
		v.awaitFailed(t)
		service.checkRepaired(t, personalSplit(service.good))
		judged.checkRepaired(t, stays)
	}
}

// verdictsWithoutFunction: function verdict is deleted while two verdicts arrive. The first cannot be
// delivered, and function deadletter, which handles it, is killed. The second arrives while the Broker is down as well.
func verdictsWithoutFunction(t *testing.T, e *environment) {
	undelivered, unsent := e.unsentVerdict(t), e.unsentVerdict(t)
	restoreFunction := e.deleteFunction(t, "verdict")
	undelivered.fail(t)
	e.kill(t, function("deadletter"))
	restoreBroker := stopBroker(t, e)
	unsent.fail(t)
	restoreBroker()
	restoreFunction()
	undelivered.awaitFailed(t)
	unsent.awaitFailed(t)
}

// callbackTimeout is the time that the server waits for the response to its
// callback.
const callbackTimeout = 6 * time.Second

func stopBroker(t *testing.T, e *environment) (undo func()) {
	return e.scaleToZero(t, eventing, "mt-broker-ingress")
}

// webhookUnreachable: releases of suspended workloads need the webhook; other releases, scaling and labels do not.
// The namespace has the first version of a Knative Service.
func webhookUnreachable(n *namespace) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n.suspendWeb(t)
		n.create(t, builder.Deployment("free", 2, builder.Simulated))
		n.awaitPhase(t, rolloutTimeout, "free", v1alpha1.ReleaseSuccess)
		n.awaitAttempt(t, rolloutTimeout, workload.KnativeService, "web", 1, v1alpha1.ReleaseSuccess)
		// A workload created shortly after the opt-in counts as a baseline.
		await(t, shortTimeout, "the opt-in is older than the tolerated clock skew", func(ctx context.Context) error {
			ns, err := e.kube.CoreV1().Namespaces().Get(ctx, n.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if age := time.Since(ns.CreationTimestamp.Time); age < 12*time.Second {
				return fmt.Errorf("%s old", age)
			}
			return nil
		})
		undo := e.scaleToZero(t, system, "webhook")
		if r := n.try(t, "patch", "deployment", "web", "-p", templatePatch, "--type", "merge"); r.Code == 0 {
			t.Errorf("a suspended Deployment was released while the webhook was unreachable:\n%s", r)
		}
		n.run(t, "scale", "deployment", "web", "--replicas=3")
		n.run(t, "label", "deployment", "web", "team=a")
		n.release(t, "free", "v2")
		n.create(t, builder.Deployment("new", 1, builder.Simulated))
		n.patchKnative(t, releaseOf("v2"))
		n.awaitAvailable(t, "free")
		n.awaitAvailable(t, "new")
		// The webhook replaces the path, as after ten minutes.
		n.run(t, "patch", "mutatingwebhookconfiguration", admission.Configuration, "-p",
			`{"webhooks":[{"name":"mdeployment.kb.io","clientConfig":{"service":{"path":"/admission/1-a/mdeployment.kb.io"}}}]}`)
		undo()
		// The namespace was opted in long before new was created, and the webhook was installed, so
		// new is not a baseline.
		for name, attempt := range map[string]int64{"free": 2, "new": 1} {
			await(t, recoveryTimeout, "the release of "+name+" without the webhook is found", func(ctx context.Context) error {
				c, err := n.current(ctx, name)
				if err != nil {
					return err
				}
				if c.Spec.Attempt != attempt || c.Status.Phase != v1alpha1.ReleaseSuccess {
					return fmt.Errorf("attempt %d is %q", c.Spec.Attempt, c.Status.Phase)
				}
				return nil
			})
		}
		n.awaitAttempt(t, recoveryTimeout, workload.KnativeService, "web", 2, v1alpha1.ReleaseSuccess)
		n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	}
}
