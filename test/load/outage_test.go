//go:build controlplane

package load

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// unanswered is how long the functions wait for an answer of the API server.
const unanswered = 5 * time.Second

// The POST check of one pod begins and ends during the outage. The other pod becomes Ready after it.
func TestNothingOfAReleaseIsLostWhileTheAPIServerOrEtcdIsUnreachable(t *testing.T) {
	for _, process := range []string{"kube-apiserver", "etcd"} {
		t.Run(process, func(t *testing.T) {
			f := newFixture(t)
			t.Cleanup(server.Reset)
			if err := server.SetScript(double.Script{Checks: []double.CheckRule{{
				Match: double.Match{Namespace: f.namespace, Step: "BATCH", Stage: double.Post}, Nth: 1,
				Then: double.Behaviour{Forgotten: true},
			}}}); err != nil {
				t.Fatal(err)
			}
			f.create(t, builder.Deployment("web", 2, builder.Simulated, gated))
			f.openGateOfOnePod(t)
			node := f.awaitCheck(t).Status.ChangePodID
			expiry := f.expiryOfLeases(t)

			resume := plane.Pause(t, process)
			f.checkUnreachable(t)
			server.TakeUp(node)
			await(t, "the verdict was sent and the Leases have expired", func(context.Context) error {
				if left := time.Until(expiry); left > 0 || !calledBack(node) {
					return fmt.Errorf("called back: %t; a Lease lasts for %s more", calledBack(node), left)
				}
				return nil
			})
			resume()

			f.openGateOfOnePod(t)
			releases := f.awaitReleases(t, 1)
			checkJudged(t, releases, 2)
			f.checkSubmittedOnce(t, &releases[0])
		})
	}
}

// openGateOfOnePod removes the gate of a pod that has it.
func (f fixture) openGateOfOnePod(t *testing.T) {
	t.Helper()
	pods := f.Kube.CoreV1().Pods(f.namespace)
	await(t, "a pod is scheduled", func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 })
		if i < 0 {
			return fmt.Errorf("none of %d pods has a gate", len(list.Items))
		}
		_, err = pods.Patch(ctx, list.Items[i].Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
		return err
	})
}

// awaitCheck waits until the POST check of the only batch is submitted and the answer to its call is stored.
func (f fixture) awaitCheck(t *testing.T) (batch v1alpha1.ChangePod) {
	t.Helper()
	await(t, "a POST check is submitted", func(ctx context.Context) error {
		list, err := f.Breakwater.AppV1alpha1().ChangePods(f.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d batches", len(list.Items))
		}
		batch = list.Items[0]
		if post := batch.Status.SubmissionOf(v1alpha1.StagePost); post == nil || post.AnsweredTime == nil {
			return fmt.Errorf("submissions %+v", batch.Status.Submissions)
		}
		return nil
	})
	return batch
}

// calledBack reports whether the server has sent the verdict of stage POST of a node.
func calledBack(node string) bool {
	return slices.ContainsFunc(server.Log().Callbacks, func(c double.CallbackEntry) bool { return c.Node == node && c.Stage == double.Post })
}

// expiryOfLeases returns when the Leases of the controller expire if they are not renewed any more.
func (f fixture) expiryOfLeases(t *testing.T) (expiry time.Time) {
	t.Helper()
	list, err := f.Kube.CoordinationV1().Leases(v1alpha1.SystemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		s := list.Items[i].Spec
		if end := s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second); end.After(expiry) {
			expiry = end
		}
	}
	return expiry
}

// checkUnreachable fails if a write is answered.
func (f fixture) checkUnreachable(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), unanswered)
	defer cancel()
	_, err := f.Kube.CoreV1().ConfigMaps(f.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "written"}}, metav1.CreateOptions{})
	if err == nil {
		t.Fatal("a write was answered during the outage")
	}
}

// checkSubmittedOnce fails if the server received a call of a release twice, except questions for
// a verdict, or if it has another number of batches than the release.
func (f fixture) checkSubmittedOnce(t *testing.T, release *v1alpha1.ChangeWorkload) {
	t.Helper()
	batches, err := f.Breakwater.AppV1alpha1().ChangePods(f.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	calls, starts := map[string]int{}, 0
	for _, c := range server.Log().Calls {
		if c.Order != release.Spec.OrderID || c.Action == "retrieveChangeCheck" {
			continue
		}
		t.Logf("%s %s %s: %s", c.Time.Format("15:04:05.000"), c.Action, c.Node, c.Code)
		calls[c.Action+" "+c.Node]++
		if c.Action == "submitChangeExecBatchStartNotify" {
			starts++
		}
	}
	if starts != len(batches.Items) || starts == 0 {
		t.Errorf("the server received %d starts of %d batches", starts, len(batches.Items))
	}
	// Two wake-ups at once may both open the order, which needs no intent: it is one order.
	if delete(calls, "submitChangeExecOrder "); len(ordersWith(release.Spec.OrderID)) != 1 {
		t.Errorf("the server has the orders %+v", ordersWith(release.Spec.OrderID))
	}
	for call, n := range calls {
		if n > 1 {
			t.Errorf("the server received %d calls %s", n, call)
		}
	}
}

// ordersWith returns the orders of the server with an id.
func ordersWith(id string) []double.Order {
	return slices.DeleteFunc(server.Orders(), func(o double.Order) bool { return o.Order != id })
}
