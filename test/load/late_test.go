//go:build controlplane

package load

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The rollout of the second version stands at its first pod. The server forgets the check of this pod for
// longer than post-timeout, so the rollout is held. Then the server begins the check.
func TestALateVerdictEndsTheHoldOfAnUnjudgedRollout(t *testing.T) {
	const pods = 2
	f := newFixture(t)
	f.SetConfig(t, v1alpha1.ConfigNoVerdict, string(v1alpha1.NoVerdictHold))
	f.SetConfig(t, v1alpha1.ConfigPostTimeout, "3s")
	fixtures, firsts, script := map[string]fixture{"pass": newFixture(t), "fail": newFixture(t)}, map[string]string{}, double.Script{}
	for verdict, f := range fixtures {
		f.create(t, builder.Deployment("web", pods, builder.Simulated, builder.Paced(1)))
		match := double.Match{Namespace: f.namespace, Step: "BATCH", Stage: double.Post}
		script.Checks = append(script.Checks,
			double.CheckRule{Match: match, Nth: 1, Then: double.Behaviour{Forgotten: true}},
			double.CheckRule{Match: match, Nth: 2, Then: double.Behaviour{Verdict: verdict}})
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
				f.checkLateVerdict(t, verdict, firsts[verdict])
			})
		}
	})
}

func (f fixture) checkLateVerdict(t *testing.T, verdict, first string) {
	t.Helper()
	deployments := f.Kube.AppsV1().Deployments(f.namespace)
	patch := func(spec string) {
		t.Helper()
		if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(fmt.Sprintf(`{"minReadySeconds":300,"template":{"metadata":{"annotations":{%q:"v2"}}}}`, builder.Marker))
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
	var order string
	await(t, "the rollout is held", func(ctx context.Context) error {
		c, err := second(ctx)
		if err != nil {
			return err
		}
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		order = c.Spec.OrderID
		if cond := c.Status.GetCondition(apis.ConditionSucceeded); cond == nil || cond.Reason != v1alpha1.ReasonHeldUnjudged || !d.Spec.Paused {
			return fmt.Errorf("condition Succeeded is %+v, paused %v", cond, d.Spec.Paused)
		}
		return nil
	})
	patch(`{"minReadySeconds":1}`)
	for _, n := range server.Nodes() {
		if n.Order == order {
			server.TakeUp(n.ID)
		}
	}
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
			err = fmt.Errorf("suspended %q, paused %v, %d pods updated", d.Labels[v1alpha1.SuspendLabel], d.Spec.Paused, d.Status.UpdatedReplicas)
		}
		return err
	})
}
