//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// suspendWeb creates a Deployment web whose only release failed after it was
// complete: it is suspended and not paused.
func (n *namespace) suspendWeb(t *testing.T, options ...func(*appsv1.Deployment)) {
	t.Helper()
	n.create(t, builder.Deployment("web", 2, append(options, builder.Simulated)...))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.judgeByHand(t, n.awaitBatch(t, shortTimeout, "web", 1, "exists", exists), "unpass", "find error")
	n.awaitPhase(t, shortTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
}

// holdWeb creates a Deployment web whose second release failed at its first
// pod: it is suspended and paused, and v1 succeeded.
func (n *namespace) holdWeb(t *testing.T) {
	t.Helper()
	n.create(t, builder.Deployment("web", 4, builder.Simulated, builder.Paced(8)))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.release(t, "web", "v2")
	n.judgeByHand(t, n.awaitBatch(t, rolloutTimeout, "web", 1, "exists", exists), "unpass", "find error")
	n.awaitDeployment(t, shortTimeout, "web", "is held", func(d *appsv1.Deployment) bool { return isSuspended(d) && d.Spec.Paused })
}

// admittedWhileSuspended lists changes of a suspended Deployment that are
// admitted.
func admittedWhileSuspended(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.suspendWeb(t)
	n.checkStdout(t, "deployment.apps/web scaled\n", "scale", "deployment", "web", "--replicas=3")
	n.awaitAvailable(t, "web")
	n.checkStdout(t, "deployment.apps/web annotated\n", "annotate", "deployment", "web", "owner=me")
	n.checkStdout(t, "deployment.apps/web labeled\n", "label", "deployment", "web", "team=a")
	n.checkStdout(t, "deployment.apps/web patched\n", "patch", "deployment", "web", "--subresource=status", "--type=merge",
		"-p", `{"status":{"collisionCount":1}}`)
	n.checkStdout(t, "deployment.apps/web patched\n", "patch", "deployment", "web", "--type=merge", "-p", `{"spec":{"minReadySeconds":1}}`)
	if !isSuspended(n.deployment(t, "web")) {
		t.Error("the Deployment is not suspended")
	}
	n.checkStdout(t, fmt.Sprintf("deployment.apps \"web\" deleted from %s namespace\n", n.name), "delete", "deployment", "web")
}

// deniedWhileSuspended lists changes that are denied with the documented
// message.
func deniedWhileSuspended(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.suspendWeb(t)
	suspend := n.deployment(t, "web").Labels[v1alpha1.SuspendLabel]
	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge", "--dry-run=server")
	n.checkDenied(t, "web", "label", "deployment", "web", v1alpha1.SuspendLabel+"-")
	n.checkDenied(t, "web", "label", "deployment", "web", v1alpha1.SuspendLabel+"=1", "--overwrite")
	n.checkDenialContains(t, "set", "image", "deployment/web", "sleep=busybox:other")
	n.checkDenialContains(t, "rollout", "restart", "deployment", "web")
	if got := n.deployment(t, "web").Labels[v1alpha1.SuspendLabel]; got != suspend {
		t.Errorf("the suspend label changed from %s to %s", suspend, got)
	}
	n.awaitEvent(t, "web", v1alpha1.ReasonReleaseDenied, "is suspended")
}

// checkDenialContains runs kubectl, which must be denied. Some commands add
// their own text to the error of the API server.
func (n *namespace) checkDenialContains(t *testing.T, args ...string) {
	t.Helper()
	if r := n.try(t, args...); r.Code == 0 || !strings.Contains(r.Stderr, "deployment web is suspended") {
		t.Errorf("the command was not denied as expected:\n%s", r)
	}
}

// heldRollout cannot be resumed by hand.
func heldRollout(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.holdWeb(t)
	n.checkDenialContains(t, "rollout", "resume", "deployment", "web")
	n.checkDenied(t, "web", "patch", "deployment", "web", "--type=merge", "-p", `{"spec":{"paused":false}}`)
	n.checkDenied(t, "web", "annotate", "deployment", "web", v1alpha1.HoldAnnotation+"-")
	n.checkStdout(t, "deployment.apps/web scaled\n", "scale", "deployment", "web", "--replicas=5")
	if d := n.deployment(t, "web"); !d.Spec.Paused {
		t.Error("the rollout is not paused")
	}
}

// deletedFailedPod: the fail remains after the deletion of the failed pod.
func deletedFailedPod(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.suspendWeb(t)
	c := n.awaitPhase(t, shortTimeout, "web", v1alpha1.ReleaseSuspend)
	failedPod := c.Status.DefenseCheckFailPods[0].Pod
	n.run(t, "delete", "pod", failedPod)
	n.awaitBatch(t, rolloutTimeout, "web", 3, "with the replacement pod is done", isDone)
	n.awaitClaims(t, shortTimeout, "web")
	c = n.awaitPhase(t, shortTimeout, "web", v1alpha1.ReleaseSuspend)
	if len(c.Status.DefenseCheckFailPods) != 1 || c.Status.DefenseCheckFailPods[0].Pod != failedPod {
		t.Errorf("failed pods are %+v, want %s", c.Status.DefenseCheckFailPods, failedPod)
	}
	if !isSuspended(n.deployment(t, "web")) {
		t.Error("the Deployment is not suspended")
	}
	// The pass of a person ends the suspension.
	n.judgeByHand(t, n.awaitBatch(t, shortTimeout, "web", 1, "exists", exists), "pass", "looked at it")
	n.awaitPhase(t, shortTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
}

// secondRepair of one suspension is denied. It is admitted after the annotation
// of the first repair is removed.
func secondRepair(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.holdWeb(t)
	n.repair(t, "web", "v3")
	d := n.deployment(t, "web")
	if d.Spec.Paused || d.Labels[v1alpha1.IgnoredSuspendLabel] != "" || !isSuspended(d) {
		t.Errorf("after the repair paused is %t and the labels are %v", d.Spec.Paused, d.Labels)
	}
	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	r := n.try(t, "patch", "deployment", "web", "--type=merge", "-p", repairOf("v4"))
	if r.Code == 0 || !strings.Contains(r.Stderr, "deployment web is suspended: ") || !strings.Contains(r.Stderr, v1alpha1.BypassAnnotation) {
		t.Errorf("a second repair was not denied as expected:\n%s", r)
	}
	n.run(t, "annotate", "deployment", "web", v1alpha1.BypassAnnotation+"-")
	n.checkStdout(t, "deployment.apps/web patched\n", "patch", "deployment", "web", "--type=merge", "-p", repairOf("v4"))
	n.unpace(t, "web")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
}

// rollbackAdmitted: a rollback to a version that succeeded is admitted and
// resumes the rollout.
func rollbackAdmitted(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.holdWeb(t)
	n.release(t, "web", "v1")
	if d := n.deployment(t, "web"); d.Spec.Paused {
		t.Error("the rollback is paused")
	}
	n.unpace(t, "web")
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if c.Spec.Attempt != 3 {
		t.Errorf("the rollback is attempt %d, want 3", c.Spec.Attempt)
	}
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	n.awaitEvent(t, "web", v1alpha1.ReasonRollbackAdmitted, "rollback")
	n.awaitClaims(t, shortTimeout, "web")
}

// rolloutUndo is a rollback with kubectl. The fail arrives after the last pod
// was replaced, so that the Deployment is suspended and not paused: kubectl
// does not undo a paused rollout.
func rolloutUndo(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 2, builder.Simulated))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.setChecks(t, double.CheckRule{Match: batch(2, double.Post), Then: double.Behaviour{Never: true}})
	n.release(t, "web", "v2")
	n.awaitAvailable(t, "web")
	late := n.awaitBatch(t, rolloutTimeout, "web", 2, "waits for its POST verdict", awaitsPostVerdict)
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if status := post(t, callback(t, c.Spec.OrderID, late.Status.ChangePodID, "fail"), serverdouble.Token); status != http.StatusOK {
		t.Fatalf("callback status %d, want 200", status)
	}
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
	n.setChecks(t)
	n.run(t, "rollout", "undo", "deployment", "web")
	await(t, rolloutTimeout, "v1 is the current template", func(ctx context.Context) error {
		d, err := n.kube.AppsV1().Deployments(n.name).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := d.Spec.Template.Annotations[builder.Marker]; got != "v1" || !isNotSuspended(d) {
			return fmt.Errorf("%s, labels %v, paused %t", got, d.Labels, d.Spec.Paused)
		}
		return nil
	})
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}
