//go:build e2e

package upgrade

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	budgets "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// requests are requests that must always be admitted: of clients that do not use Breakwater, and of
// clients that do. The latter are dry runs, which call the webhooks, too.
type requests struct {
	*fixture
	rounds int
}

const requestsNamespace = "upgrade-requests"

// plainNamespace uses no part of Breakwater.
const plainNamespace = "upgrade-plain"

func (*requests) namespace() string { return requestsNamespace }

// begin creates the namespaces, and waits until their requests are admitted.
func (r *requests) begin(ctx context.Context) error {
	labels := optedIn()
	labels[podmeta.Label] = podmeta.LabelEnabled
	if err := r.newNamespace(ctx, r.namespace(), labels); err != nil {
		return err
	}
	if err := r.newNamespace(ctx, plainNamespace, nil); err != nil {
		return err
	}
	for _, namespace := range []string{r.namespace(), plainNamespace} {
		if err := r.create(ctx, namespace, 2, 1); err != nil {
			return err
		}
	}
	if err := r.awaitRelease(ctx, r.namespace(), "v1", v1alpha1.ReleaseSuccess); err != nil {
		return err
	}
	if _, err := r.policy.PodUnavailableBudgets(r.namespace()).Create(ctx, r.budget("kept"), metav1.CreateOptions{}); err != nil {
		return err
	}
	return await(ctx, "all requests are admitted", r.round)
}

func (r *requests) budget(name string) *budgets.PodUnavailableBudget {
	return &budgets.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: budgets.PodUnavailableBudgetSpec{
			Selector: &budgets.PodSelector{MatchLabels: map[string]string{"app": web}}, MaxUnavailable: new(intstr.FromInt32(1)),
		},
	}
}

func (r *requests) during(ctx context.Context, upgraded <-chan struct{}) error {
	for last := false; !last; {
		last = closed(upgraded)
		if err := r.round(ctx); err != nil {
			return err
		}
		r.rounds++
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *requests) end(ctx context.Context) error {
	r.log("%s: %d rounds", r.namespace(), r.rounds)
	return r.round(ctx)
}

// round makes each request once.
func (r *requests) round(ctx context.Context) error {
	for _, request := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"release a Deployment of a namespace that is not opted in", func(ctx context.Context) error {
			return r.release(ctx, plainNamespace, fmt.Sprint("v", r.rounds))
		}},
		{"create, evict and delete a pod of a namespace that is not opted in", r.plainPod},
		{"create a Deployment", r.deployment},
		{"release a Deployment", func(ctx context.Context) error { return r.release(ctx, r.namespace(), "v2", metav1.DryRunAll) }},
		{"create a pod with a permission set", r.permittedPod},
		{"evict a pod within its budget", r.evict},
		{"create a budget", func(ctx context.Context) error {
			_, err := r.policy.PodUnavailableBudgets(r.namespace()).Create(ctx, r.budget("other"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}},
		{"change a setting", r.setting},
		{"change the namespace", func(ctx context.Context) error {
			n, err := r.kube.CoreV1().Namespaces().Get(ctx, r.namespace(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			n.Labels["round"] = fmt.Sprint(r.rounds)
			_, err = r.kube.CoreV1().Namespaces().Update(ctx, n, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}},
	} {
		if err := request.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", request.what, err)
		}
	}
	return nil
}

func (r *requests) plainPod(ctx context.Context) error {
	pods := r.kube.CoreV1().Pods(plainNamespace)
	d := builder.Deployment("pod", 1, builder.Simulated)
	for _, remove := range []func(name string) error{
		func(name string) error {
			return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}})
		},
		func(name string) error {
			return pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		},
	} {
		p, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}, Spec: d.Spec.Template.Spec}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if err := remove(p.Name); err != nil {
			return err
		}
	}
	return nil
}

func (r *requests) deployment(ctx context.Context) error {
	_, err := r.kube.AppsV1().Deployments(r.namespace()).Create(ctx, builder.Deployment("other", 1), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (r *requests) permittedPod(ctx context.Context) error {
	d := builder.Deployment("pod", 1)
	_, err := r.kube.CoreV1().Pods(r.namespace()).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Annotations: map[string]string{podmeta.PermissionSetAnnotation: "web"}}, Spec: d.Spec.Template.Spec,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func (r *requests) evict(ctx context.Context) error {
	list, err := r.kube.CoreV1().Pods(r.namespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("namespace %s has no pods", r.namespace())
	}
	return r.kube.CoreV1().Pods(r.namespace()).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: list.Items[0].Name}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
}

func (r *requests) setting(ctx context.Context) error {
	_, err := r.change.OpsConfigInfoes(v1alpha1.SystemNamespace).Create(ctx, &v1alpha1.OpsConfigInfo{
		ObjectMeta: metav1.ObjectMeta{Name: "upgrade-request"},
		Spec:       v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigWaitThreshold, Content: "10s", Enable: true},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func quantity(s string) *resource.Quantity { return new(resource.MustParse(s)) }
