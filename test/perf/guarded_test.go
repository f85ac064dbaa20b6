//go:build bench

package perf

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	policy "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

const (
	// idleNamespaces is the number of namespaces of the guarded pods.
	idleNamespaces = 10
	// podsPerBudget is the number of pods of a Deployment, which has one budget.
	podsPerBudget = 10
	// guardedWriters is how many objects are written at a time.
	guardedWriters = 20
)

// guardedPods are pods of namespaces that are opted in. Each has a budget and needs a permission.
type guardedPods struct {
	*benchmark
	centre     *setup.Cluster
	namespaces []string
}

// guardedPods creates IdlePods pods and waits until they are Ready and all releases are recorded.
func (b *benchmark) guardedPods(ctx context.Context, t *testing.T) (*guardedPods, error) {
	g := &guardedPods{benchmark: b}
	var output bytes.Buffer
	var err error
	if g.centre, err = setup.Install(ctx, b.kube, "../..", &output); err != nil {
		return nil, fmt.Errorf("%w: %s", err, output.String())
	}
	if err := g.centre.Register(ctx, setup.WebObjects()...); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		if err := g.remove(ctx); err != nil {
			t.Errorf("remove the pods: %v", err)
		}
	})
	for i := range idleNamespaces {
		g.namespaces = append(g.namespaces, fmt.Sprintf("bench-idle-%d", i+1))
	}
	for _, namespace := range g.namespaces {
		if err := g.create(ctx, namespace, b.IdlePods/idleNamespaces); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// create creates the Deployments and budgets of a namespace, and opts it in when they are rolled out.
func (g *guardedPods) create(ctx context.Context, namespace string, pods int) error {
	if err := g.namespace(ctx, namespace); err != nil {
		return err
	}
	if err := g.label(ctx, namespace, podmeta.Label, podmeta.LabelEnabled); err != nil {
		return err
	}
	deployments := pods / podsPerBudget
	writers, writing := errgroup.WithContext(ctx)
	writers.SetLimit(guardedWriters)
	for i := range deployments {
		writers.Go(func() error { return g.deployGuarded(writing, namespace, fmt.Sprintf("%s-%d", name, i)) })
	}
	if err := writers.Wait(); err != nil {
		return err
	}
	if err := g.allComplete(ctx, namespace, "", deployments); err != nil {
		return err
	}
	if err := g.setOptIn(ctx, namespace); err != nil {
		return err
	}
	return g.await(ctx, "the baselines of "+namespace+" are recorded", func(ctx context.Context) (bool, error) {
		list, err := g.change.AppV1alpha1().ChangeWorkloads(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		done := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == v1alpha1.ReleaseSuccess {
				done++
			}
		}
		return done == deployments, nil
	})
}

// deployGuarded creates a Deployment whose pods need a permission, and its budget.
func (g *guardedPods) deployGuarded(ctx context.Context, namespace, name string) error {
	d := builder.Deployment(name, podsPerBudget, builder.Simulated)
	d.Spec.Template.Annotations[podmeta.PermissionSetAnnotation] = "web"
	if _, err := g.kube.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	most := intstr.FromInt32(1)
	_, err := g.change.PolicyV1alpha1().PodUnavailableBudgets(namespace).Create(ctx, &policy.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policy.PodUnavailableBudgetSpec{Selector: &policy.PodSelector{MatchLabels: d.Spec.Selector.MatchLabels}, MaxUnavailable: &most},
	}, metav1.CreateOptions{})
	return err
}

// grant requests the permissions of all pods, as their init containers do: simulated pods run
// none. It returns the number of grants.
func (g *guardedPods) grant(ctx context.Context) (int, error) {
	requests, requesting := errgroup.WithContext(ctx)
	requests.SetLimit(guardedWriters)
	pods := 0
	for _, namespace := range g.namespaces {
		list, err := g.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: podmeta.Label + "=" + podmeta.LabelRequired})
		if err != nil {
			return 0, err
		}
		pods += len(list.Items)
		for i := range list.Items {
			requests.Go(func() error { return g.request(requesting, &list.Items[i]) })
		}
	}
	if err := requests.Wait(); err != nil {
		return 0, err
	}
	return pods, g.await(ctx, "all permissions are granted", func(ctx context.Context) (bool, error) {
		stats, err := g.centre.ProviderStats(ctx)
		return len(stats.Current) >= pods, err
	})
}

// request requests the permission of a pod at the permission centre.
func (g *guardedPods) request(ctx context.Context, p *corev1.Pod) error {
	status, raw, err := g.centre.Do(ctx, http.MethodPost, g.centre.Centre+"/v1/applications", g.centre.Token, api.ApplicationRequest{
		Cluster: "default", Namespace: p.Namespace, Pod: p.Name, PodUID: string(p.UID), PodIPs: podmeta.IPs(p), Node: p.Spec.NodeName, Set: "web",
	})
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("request the permission of %s: %d %s", p.Name, status, raw)
	}
	return err
}

// guarding waits until all budgets guard their pods, and returns their number.
func (g *guardedPods) guarding(ctx context.Context) (int, error) {
	budgets := 0
	for _, namespace := range g.namespaces {
		if err := g.await(ctx, "the budgets of "+namespace+" are guarding", func(ctx context.Context) (bool, error) {
			list, err := g.change.PolicyV1alpha1().PodUnavailableBudgets(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			for i := range list.Items {
				status := list.Items[i].Status
				if !status.GetCondition(policy.BudgetGuarding).IsTrue() || status.CurrentAvailable != podsPerBudget {
					return false, nil
				}
			}
			budgets += len(list.Items)
			return true, nil
		}); err != nil {
			return 0, err
		}
	}
	return budgets, nil
}

// remove ends all pods and waits until their grants are revoked. No kubelet reports the end of a
// simulated pod, so it is reported here; without their controllers, the pods are not replaced.
func (g *guardedPods) remove(ctx context.Context) error {
	orphan := metav1.DeletePropagationOrphan
	for _, namespace := range g.namespaces {
		deployments, sets := g.kube.AppsV1().Deployments(namespace), g.kube.AppsV1().ReplicaSets(namespace)
		if err := g.await(ctx, "the controllers of the pods of "+namespace+" are deleted", func(ctx context.Context) (bool, error) {
			if err := deployments.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &orphan}, metav1.ListOptions{}); err != nil {
				return false, err
			}
			d, err := deployments.List(ctx, metav1.ListOptions{})
			if err != nil || len(d.Items) > 0 {
				return false, err
			}
			if err := sets.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &orphan}, metav1.ListOptions{}); err != nil {
				return false, err
			}
			s, err := sets.List(ctx, metav1.ListOptions{})
			return err == nil && len(s.Items) == 0, err
		}); err != nil {
			return err
		}
	}
	return g.await(ctx, "the grants are revoked", func(ctx context.Context) (bool, error) {
		held := 0
		for _, namespace := range g.namespaces {
			n, err := g.endPods(ctx, namespace)
			if err != nil {
				return false, err
			}
			held += n
		}
		return held == 0, nil
	})
}

// endPods reports the end of the pods of a namespace, and returns how many have the finalizer.
func (g *guardedPods) endPods(ctx context.Context, namespace string) (held int, _ error) {
	list, err := g.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: podmeta.Label + "=" + podmeta.LabelRequired})
	if err != nil {
		return 0, err
	}
	ends, ending := errgroup.WithContext(ctx)
	ends.SetLimit(guardedWriters)
	for i := range list.Items {
		p := &list.Items[i]
		if !podmeta.HasFinalizer(p) {
			continue
		}
		held++
		if p.Status.Phase != corev1.PodSucceeded {
			ends.Go(func() error {
				_, err := g.kube.CoreV1().Pods(p.Namespace).Patch(ending, p.Name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
				return err
			})
		}
	}
	return held, ends.Wait()
}
