//go:build controlplane

package change

import (
	"context"
	"fmt"
	"testing"

	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// awaitUnjudged waits until an attempt is held because it is unjudged, and fails unless
// the workload is not suspended and pods have the former version.
func (w target) awaitUnjudged(t *testing.T, attempt int64, marker string) {
	t.Helper()
	await(t, fmt.Sprintf("attempt %d is held", attempt), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		cond := c.Status.GetCondition(v1alpha1.ReleaseHeld)
		if !cond.IsTrue() || cond.Reason != v1alpha1.ReasonHeldUnjudged || c.Spec.Attempt != attempt {
			return fmt.Errorf("attempt %d, Held is %+v", c.Spec.Attempt, cond)
		}
		return nil
	})
	w.awaitWorkload(t, "is held without a suspension", func(live *workload.Workload) bool {
		return live.PausedOrHeld() && live.Labels[v1alpha1.SuspendLabel] == ""
	})
	if n := w.updatedPods(t, marker); n == 0 || n >= replicas {
		t.Errorf("%d pods of %d have the held version", n, replicas)
	}
}

// passAll passes the unjudged batches of the current release until it has succeeded and its
// template is saved.
func (w target) passAll(t *testing.T, attempt int64) {
	t.Helper()
	await(t, fmt.Sprintf("attempt %d succeeds", attempt), func(ctx context.Context) error {
		c, err := w.release(ctx)
		if err != nil {
			return err
		}
		if c.Spec.WorkloadRef.Kind != w.kind.Kind || c.Labels[v1alpha1.DeploymentNameLabel] != w.name {
			t.Errorf("attempt %d: workloadRef %+v, labels %v", c.Spec.Attempt, c.Spec.WorkloadRef, c.Labels)
		}
		if c.Spec.Attempt == attempt && c.Status.Phase == v1alpha1.ReleaseSuccess {
			return nil
		}
		batches, err := w.batches(ctx, c)
		if err != nil {
			return err
		}
		for i := range batches {
			if len(batches[i].Status.PodResults) == 0 && batches[i].Status.Phase == v1alpha1.BatchExecuteDone {
				w.judge(t, &batches[i], "pass")
			}
		}
		return fmt.Errorf("attempt %d is %q (%s); the workload: %s", c.Spec.Attempt, c.Status.Phase,
			c.Status.GetCondition(apis.ConditionSucceeded).GetMessage(), w.state(ctx))
	})
	w.awaitSaved(t, attempt)
}

// checkUnjudgedHolds follows an unjudged workload of 6 pods through every way out of a
// hold: a person's pass, a newer template, and a fail with its rollback.
func (w target) checkUnjudgedHolds(t *testing.T) {
	t.Helper()
	w.passAll(t, 1)

	w.mustPatch(t, releaseOf("v2"))
	w.awaitUnjudged(t, 2, "v2")
	w.passAll(t, 2)
	w.awaitResumed(t)

	w.mustPatch(t, releaseOf("v3"))
	w.awaitUnjudged(t, 3, "v3")
	w.mustPatch(t, releaseOf("v4")) // is admitted, and ends the hold
	w.passAll(t, 4)
	w.awaitResumed(t)

	w.mustPatch(t, releaseOf("v5"))
	w.awaitUnjudged(t, 5, "v5")
	w.judge(t, w.awaitBatch(t, 5), "unpass")
	w.awaitHeld(t)
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 5)
	w.mustPatch(t, releaseOf("v4")) // a rollback
	w.passAll(t, 6)
	w.awaitResumed(t)
}

// holdUnjudged makes unjudged releases be held. There is no server, so each batch is
// unjudged at once.
func (f fixture) holdUnjudged(t *testing.T) {
	t.Helper()
	f.SetConfig(t, v1alpha1.ConfigNoVerdict, string(v1alpha1.NoVerdictHold))
}

func TestAnUnjudgedRolloutIsHeldUntilItIsJudged(t *testing.T) {
	f := newFixture(t)
	users := map[string]string{"Rollout": f.useArgo(t)}
	kruise := f.useKruise(t)
	f.holdUnjudged(t)
	type workloadOf struct {
		kind   workload.Kind
		object any
	}
	all := map[string]workloadOf{
		"Deployment":  {workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(2))},
		"StatefulSet": {workload.StatefulSet, builder.StatefulSet("web", replicas, 2)},
		"DaemonSet":   {workload.DaemonSet, builder.DaemonSet("web", f.simulatedNodes(t, replicas), 2)},
		"Rollout":     {rollout, object(t, canary)},
	}
	for name, w := range kruiseWorkloads {
		all[name] = workloadOf{w.kind, object(t, fmt.Sprintf(kruiseObject, w.spec))}
		users[name] = kruise
	}
	for name, w := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			created := newFixture(t).create(t, w.kind, w.object)
			created.checkUnjudgedHolds(t)
			if user := users[name]; user != "" {
				created.checkNotDenied(t, user)
			}
		})
	}
}
