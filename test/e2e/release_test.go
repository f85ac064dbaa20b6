//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// create creates a Deployment.
func (n *namespace) create(t *testing.T, d *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	created, err := n.kube.AppsV1().Deployments(n.name).Create(t.Context(), d, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create Deployment %s: %v", d.Name, err)
	}
	return created
}

// deployment returns the current state of a Deployment.
func (n *namespace) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d, err := n.kube.AppsV1().Deployments(n.name).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// release changes the marker in the pod template.
func (n *namespace) release(t *testing.T, name, marker string) {
	t.Helper()
	if err := n.patch(t.Context(), name, releaseOf(marker)); err != nil {
		t.Fatalf("release %s of %s: %v", marker, name, err)
	}
}

// repair is a release with the label of a repair.
func (n *namespace) repair(t *testing.T, name, marker string) {
	t.Helper()
	if err := n.patch(t.Context(), name, repairOf(marker)); err != nil {
		t.Fatalf("repair %s of %s: %v", marker, name, err)
	}
}

// unpace makes the rest of a rollout fast, when the test needs no verdict before its end.
func (n *namespace) unpace(t *testing.T, name string) {
	t.Helper()
	if err := n.patch(t.Context(), name, `{"spec":{"minReadySeconds":0}}`); err != nil {
		t.Fatal(err)
	}
}

func releaseOf(marker string) string {
	return fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, builder.Marker, marker)
}

func repairOf(marker string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		v1alpha1.IgnoredSuspendLabel, builder.Marker, marker)
}

func (n *namespace) patch(ctx context.Context, name, body string) error {
	_, err := n.kube.AppsV1().Deployments(n.name).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return err
}

// current returns the ChangeWorkload of a Deployment's current release.
func (n *namespace) current(ctx context.Context, name string) (*v1alpha1.ChangeWorkload, error) {
	d, err := n.kube.AppsV1().Deployments(n.name).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	release, ok := v1alpha1.ReleaseOf(d.Annotations)
	if !ok {
		return nil, fmt.Errorf("deployment %s has no version and attempt", name)
	}
	c, err := n.change.ChangeWorkloads(n.name).Get(ctx, v1alpha1.ChangeWorkloadName(name, release.Version), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if c.Spec.Attempt != release.Attempt {
		return nil, fmt.Errorf("ChangeWorkload %s has attempt %d, the Deployment %d", c.Name, c.Spec.Attempt, release.Attempt)
	}
	return c, nil
}

// awaitPhase waits until the current release of a Deployment has a phase.
func (n *namespace) awaitPhase(t *testing.T, within time.Duration, name string, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
	t.Helper()
	var found *v1alpha1.ChangeWorkload
	await(t, within, fmt.Sprintf("the release of %s is %s", name, phase), func(ctx context.Context) error {
		c, err := n.current(ctx, name)
		if err != nil {
			return err
		}
		found = c
		if c.Status.Phase == phase {
			return nil
		}
		return fmt.Errorf("%s is %q: %+v", c.Name, c.Status.Phase, c.Status.Counts)
	})
	return found
}

// changePods returns the batches of a release in their order.
func (n *namespace) changePods(ctx context.Context, c *v1alpha1.ChangeWorkload) ([]v1alpha1.ChangePod, error) {
	list, err := n.change.ChangePods(n.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(list.Items, func(p v1alpha1.ChangePod) bool { return !metav1.IsControlledBy(&p, c) })
	slices.SortFunc(own, func(a, b v1alpha1.ChangePod) int {
		return v1alpha1.ChangePodIndex(a.Name) - v1alpha1.ChangePodIndex(b.Name)
	})
	return own, nil
}

// awaitBatch waits until the batch with an index fulfills a condition, and
// returns it. The first index is 1.
func (n *namespace) awaitBatch(t *testing.T, within time.Duration, name string, index int, what string, holds func(*v1alpha1.ChangePod) bool) *v1alpha1.ChangePod {
	t.Helper()
	var found *v1alpha1.ChangePod
	await(t, within, fmt.Sprintf("batch %d of %s %s", index, name, what), func(ctx context.Context) error {
		c, err := n.current(ctx, name)
		if err != nil {
			return err
		}
		p, err := n.change.ChangePods(n.name).Get(ctx, v1alpha1.ChangePodName(c.Name, index), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !metav1.IsControlledBy(p, c) {
			return fmt.Errorf("%s belongs to another attempt", p.Name)
		}
		found = p
		if !holds(p) {
			return fmt.Errorf("%s is %q", p.Name, p.Status.Phase)
		}
		return nil
	})
	return found
}

// exists accepts each batch.
func exists(*v1alpha1.ChangePod) bool { return true }

// isDone reports whether a batch has ended.
func isDone(p *v1alpha1.ChangePod) bool { return p.Status.Phase == v1alpha1.BatchExecuteDone }

// judgeByHand gives all pods of a batch a verdict, as a person with kubectl
// does.
func (n *namespace) judgeByHand(t *testing.T, p *v1alpha1.ChangePod, verdict, message string) {
	t.Helper()
	results := slices.Clone(p.Spec.PodInfos)
	for i := range results {
		results[i].Verdict, results[i].Message = verdict, message
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"podResults": results, "message": "PostFinish"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.change.ChangePods(n.name).Patch(t.Context(), p.Name, types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatalf("judge %s by hand: %v", p.Name, err)
	}
}

// awaitDeployment waits until a Deployment fulfills a condition.
func (n *namespace) awaitDeployment(t *testing.T, within time.Duration, name, what string, holds func(*appsv1.Deployment) bool) *appsv1.Deployment {
	t.Helper()
	var found *appsv1.Deployment
	await(t, within, fmt.Sprintf("Deployment %s %s", name, what), func(ctx context.Context) error {
		d, err := n.kube.AppsV1().Deployments(n.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		found = d
		if !holds(d) {
			return fmt.Errorf("labels %v, annotations %v, paused %t", d.Labels, d.Annotations, d.Spec.Paused)
		}
		return nil
	})
	return found
}

func isSuspended(d *appsv1.Deployment) bool { return d.Labels[v1alpha1.SuspendLabel] != "" }

// isNotSuspended reports whether a Deployment has neither suspension nor hold.
func isNotSuspended(d *appsv1.Deployment) bool {
	_, held := d.Annotations[v1alpha1.HoldAnnotation]
	_, repairs := d.Labels[v1alpha1.IgnoredSuspendLabel]
	return !isSuspended(d) && !held && !repairs && !d.Spec.Paused
}

// awaitEvent waits for a Kubernetes Event of an object with a reason and a
// message that contains text.
func (n *namespace) awaitEvent(t *testing.T, object, reason, text string) {
	t.Helper()
	await(t, shortTimeout, fmt.Sprintf("an Event %s on %s with %q", reason, object, text), func(ctx context.Context) error {
		list, err := n.kube.CoreV1().Events(n.name).List(ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=" + object + ",reason=" + reason,
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if strings.Contains(list.Items[i].Message, text) {
				return nil
			}
		}
		return fmt.Errorf("%d Events of that reason", len(list.Items))
	})
}
