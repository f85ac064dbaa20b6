//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// crashLoop: a pod whose container crashes repeatedly is Running and not
// finished.
func crashLoop(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		// The probe never succeeds, as for an application that crashes before
		// it is ready.
		c.Command = []string{"/bin/sh", "-c", "sleep 1; exit 1"}
		c.ReadinessProbe = failingProbe()
	}))
	await(t, rolloutTimeout, "the container has crashed twice", func(ctx context.Context) error {
		pods, err := n.kube.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			if p.Labels[v1alpha1.FinishedLabel] != "" {
				t.Fatalf("pod %s counts as finished", p.Name)
			}
			for _, s := range p.Status.ContainerStatuses {
				if s.RestartCount >= 2 {
					return nil
				}
			}
		}
		return fmt.Errorf("%d pods", len(pods.Items))
	})
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	batches, err := n.changePods(t.Context(), c)
	if err != nil || len(batches) > 0 || c.Status.Phase == v1alpha1.ReleaseSuccess {
		t.Errorf("the release is %q with %d batches (%v), want none", c.Status.Phase, len(batches), err)
	}
}

// lateFailOfAnOldVersion is recorded and does not change the Deployment.
func lateFailOfAnOldVersion(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 2, builder.Simulated))
	old := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	stale := n.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone)
	// The new version waits for its verdict, so that the old ChangeWorkload is
	// not deleted.
	n.setChecks(t, double.CheckRule{Match: double.Match{Step: "BATCH", Stage: double.Post}, Then: double.Behaviour{Never: true}})
	n.release(t, "web", "v2")
	n.awaitBatch(t, rolloutTimeout, "web", 2, "exists", exists)
	n.judgeByHand(t, stale, "fail", "found late")
	await(t, shortTimeout, "the old ChangeWorkload counts the fail", func(ctx context.Context) error {
		c, err := n.change.ChangeWorkloads(n.name).Get(ctx, old.Name, metav1.GetOptions{})
		if err == nil && c.Status.Counts.Failed != 1 {
			err = fmt.Errorf("%+v", c.Status.Counts)
		}
		return err
	})
	for i := range 2 {
		n.judgeByHand(t, n.awaitBatch(t, shortTimeout, "web", i+1, "exists", exists), "pass", "looked at it")
	}
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if d := n.deployment(t, "web"); isSuspended(d) || d.Spec.Paused {
		t.Errorf("a fail of version %s suspended the next version: %v", old.Spec.Reversion, d.Labels)
	}
}

// deploymentsWithOneTemplate: two Deployments with one template have one
// version and two releases.
func deploymentsWithOneTemplate(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: double.Match{Stage: double.Post, Workload: "bad"}, Then: failed()})
	for _, name := range []string{"good", "bad"} {
		n.create(t, builder.Deployment(name, 2, builder.Simulated, func(d *appsv1.Deployment) {
			d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
			d.Spec.Template.Labels = maps.Clone(d.Spec.Selector.MatchLabels)
		}))
	}
	bad := n.awaitPhase(t, rolloutTimeout, "bad", v1alpha1.ReleaseSuspend)
	good := n.awaitPhase(t, rolloutTimeout, "good", v1alpha1.ReleaseSuccess)
	if good.Spec.Reversion != bad.Spec.Reversion {
		t.Fatalf("the templates are not the same: versions %s and %s", good.Spec.Reversion, bad.Spec.Reversion)
	}
	if good.Status.Counts.Failed > 0 || isSuspended(n.deployment(t, "good")) {
		t.Errorf("the fail of the other Deployment counts: %+v", good.Status.Counts)
	}
	n.awaitDeployment(t, shortTimeout, "bad", "is suspended", isSuspended)
}
