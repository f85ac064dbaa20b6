//go:build controlplane

package load

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The first check of the second version takes longer than post-timeout, so its rollout is held.
// Then its verdict comes.
func TestALateVerdictEndsTheHoldOfAnUnjudgedRollout(t *testing.T) {
	const pods = 6 // one every 10 s: a timeout has a grace of 15 s, and must end before the rollout
	f := newFixture(t)
	f.SetConfig(t, v1alpha1.ConfigNoVerdict, string(v1alpha1.NoVerdictHold))
	f.SetConfig(t, v1alpha1.ConfigPostTimeout, "3s")
	fixtures, firsts, script := map[string]fixture{"pass": newFixture(t), "fail": newFixture(t)}, map[string]string{}, double.Script{}
	for verdict, f := range fixtures {
		f.create(t, builder.Deployment("web", pods, builder.Simulated, builder.Paced(10)))
		script.Checks = append(script.Checks, double.CheckRule{
			Match: double.Match{Namespace: f.namespace, Step: "BATCH", Stage: double.Post}, Nth: 1,
			Then: double.Behaviour{Verdict: verdict, Delay: metav1.Duration{Duration: 45 * time.Second}},
		})
	}
	for verdict, f := range fixtures {
		firsts[verdict] = f.awaitReleases(t, 1)[0].Name
	}
	t.Cleanup(server.Reset)
	if err := server.SetScript(script); err != nil {
		t.Fatal(err)
	}
	t.Run("verdicts", func(t *testing.T) {
		for verdict, f := range fixtures {
			t.Run(verdict, func(t *testing.T) {
				t.Parallel()
				f.checkLateVerdict(t, verdict, firsts[verdict], pods)
			})
		}
	})
}

func (f fixture) checkLateVerdict(t *testing.T, verdict, first string, pods int32) {
	t.Helper()
	deployments := f.Kube.AppsV1().Deployments(f.namespace)
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:"v2"}}}}}`, builder.Marker)
	if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	second := func(ctx context.Context) (*v1alpha1.ChangeWorkload, error) {
		list, err := f.Breakwater.AppV1alpha1().ChangeWorkloads(f.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if list.Items[i].Name != first {
				return &list.Items[i], nil
			}
		}
		return nil, errors.New("the second version has no ChangeWorkload")
	}
	await(t, "the rollout is held", func(ctx context.Context) error {
		c, err := second(ctx)
		if err != nil {
			return err
		}
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == pods {
			t.Fatal("all pods were replaced before the hold: the test proves nothing")
		}
		if cond := c.Status.GetCondition(apis.ConditionSucceeded); cond == nil || cond.Reason != v1alpha1.ReasonHeldUnjudged || !d.Spec.Paused {
			return fmt.Errorf("condition Succeeded is %+v, paused %v", cond, d.Spec.Paused)
		}
		return nil
	})
	want, suspended := v1alpha1.ReleaseSuccess, verdict == "fail"
	if suspended {
		want = v1alpha1.ReleaseSuspend
	}
	await(t, "the verdict ends the hold", func(ctx context.Context) error {
		c, err := second(ctx)
		if err == nil && c.Status.Phase != want {
			err = fmt.Errorf("phase %s, counts %+v", c.Status.Phase, c.Status.Counts)
		}
		return err
	})
	await(t, "the Deployment follows", func(ctx context.Context) error {
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && ((d.Labels[v1alpha1.SuspendLabel] != "") != suspended || d.Spec.Paused != suspended) {
			err = fmt.Errorf("suspended %q, paused %v, %d of %d pods updated", d.Labels[v1alpha1.SuspendLabel], d.Spec.Paused, d.Status.UpdatedReplicas, pods)
		}
		return err
	})
}
