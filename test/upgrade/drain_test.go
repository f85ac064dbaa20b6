//go:build e2e

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/chaos"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

const (
	// webPods is the number of pods that leave the node one by one, and fixedPods that of pods that
	// may not leave it before the upgrade.
	webPods, fixedPods = 6, 2
	fixed              = "fixed"
)

// drain drains a node.
type drain struct {
	*fixture
	availability map[string]*chaos.Availability
	// done is closed when the drain has ended with err.
	done chan struct{}
	err  error
}

func (*drain) namespace() string { return "upgrade-drain" }

// node returns the name of a node.
func (d *drain) node(i int) string { return fmt.Sprintf("%s-%d", d.namespace(), i) }

func (d *drain) begin(ctx context.Context) error {
	if err := d.newNamespace(ctx, d.namespace(), nil); err != nil {
		return err
	}
	if err := d.watch(ctx); err != nil {
		return err
	}
	if err := d.newNode(ctx, d.node(0)); err != nil {
		return err
	}
	for name, pods := range map[string]int32{web: webPods, fixed: fixedPods} {
		if err := d.protect(ctx, name, pods); err != nil {
			return err
		}
	}
	if err := d.newNode(ctx, d.node(1)); err != nil {
		return err
	}
	pods, err := d.kube.CoreV1().Pods(d.namespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		d.availability[pod.Labels["app"]].Request(pod.UID) // by kubectl
	}
	ctx, failed := context.WithCancelCause(ctx)
	d.done = make(chan struct{})
	go func() {
		defer close(d.done)
		if d.err = d.drain(ctx); d.err != nil {
			failed(d.err)
		}
	}()
	return await(ctx, "the first pod has left the node", func(ctx context.Context) error {
		left, err := d.left(ctx, web)
		if err == nil && left == webPods {
			err = errors.New("all pods are on the node")
		}
		return err
	})
}

// watch starts the watch of the pods.
func (d *drain) watch(ctx context.Context) error {
	d.availability = map[string]*chaos.Availability{web: chaos.NewAvailability(), fixed: chaos.NewAvailability()}
	factory := informers.NewSharedInformerFactoryWithOptions(d.kube, 0, informers.WithNamespace(d.namespace()))
	observe := func(obj any, deleted bool) {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok {
			d.availability[pod.Labels["app"]].Observe(pod, deleted)
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { observe(obj, false) },
		UpdateFunc: func(_, obj any) { observe(obj, false) },
		DeleteFunc: func(obj any) { observe(obj, true) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// newNode creates a simulated node for the pods of this namespace, and waits until it is ready.
func (d *drain) newNode(ctx context.Context, name string) error {
	labels := map[string]string{upgradeLabel: d.namespace(), "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
	capacity := corev1.ResourceList{"cpu": *quantity("16"), "memory": *quantity("64Gi"), "pods": *quantity("110")}
	_, err := d.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: upgradeLabel, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return await(ctx, "node "+name+" has only the taint of the test", func(ctx context.Context) error {
		n, err := d.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(n.Spec.Taints) != 1 {
			err = fmt.Errorf("taints are %v", n.Spec.Taints)
		}
		return err
	})
}

// protect creates a Deployment on the nodes, and its budget.
func (d *drain) protect(ctx context.Context, name string, pods int32) error {
	onNodes := func(d *appsv1.Deployment) {
		spec := &d.Spec.Template.Spec
		spec.NodeSelector = map[string]string{upgradeLabel: "upgrade-drain"}
		spec.Tolerations = []corev1.Toleration{{Key: upgradeLabel, Operator: corev1.TolerationOpExists}}
	}
	if _, err := d.kube.AppsV1().Deployments(d.namespace()).Create(ctx, builder.Deployment(name, pods, onNodes), metav1.CreateOptions{}); err != nil {
		return err
	}
	minimum := pods
	if name == web {
		minimum--
	}
	_, err := d.policy.PodUnavailableBudgets(d.namespace()).Create(ctx, &v1alpha1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PodUnavailableBudgetSpec{
			Selector:     &v1alpha1.PodSelector{MatchLabels: map[string]string{"app": name}},
			MinAvailable: new(intstr.FromInt32(minimum)),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := d.awaitBudget(ctx, name, pods); err != nil {
		return err
	}
	d.availability[name].Require(int(minimum))
	return nil
}

// awaitBudget waits until a budget guards, all pods are available, and it has no charges.
func (d *drain) awaitBudget(ctx context.Context, name string, pods int32) error {
	return await(ctx, "budget "+name+" guards", func(ctx context.Context) error {
		b, err := d.policy.PodUnavailableBudgets(d.namespace()).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := b.Status
		if s.CurrentAvailable != pods || len(s.DeletedPods)+len(s.UnavailablePods) > 0 || s.ObservedGeneration != b.Generation ||
			!s.GetCondition(v1alpha1.BudgetGuarding).IsTrue() {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// drain runs `kubectl drain`. It retries an eviction only if a budget denied it, and fails with every
// other error.
func (d *drain) drain(ctx context.Context) error {
	r, err := kubectl.Kubectl{}.Run(ctx, "drain", d.node(0), "--ignore-daemonsets", "--timeout="+limit.String())
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("the drain failed: %s", r)
	}
	return err
}

// left returns how many pods of a Deployment are on the drained node.
func (d *drain) left(ctx context.Context, name string) (n int, err error) {
	pods, err := d.kube.CoreV1().Pods(d.namespace()).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name, FieldSelector: "spec.nodeName=" + d.node(0)})
	if err != nil {
		return 0, err
	}
	return len(pods.Items), nil
}

// during checks that the drain waits for the budget that allows no eviction.
func (d *drain) during(ctx context.Context, upgraded <-chan struct{}) error {
	select {
	case <-upgraded:
	case <-d.done:
		return fmt.Errorf("the drain ended before the budget allowed it: %w", d.err)
	case <-ctx.Done():
		return ctx.Err()
	}
	left, err := d.left(ctx, fixed)
	if err == nil && left != fixedPods {
		err = fmt.Errorf("%d pods are on the node, want %d", left, fixedPods)
	}
	return err
}

// end lets the last pods leave.
func (d *drain) end(ctx context.Context) error {
	d.availability[fixed].Require(fixedPods - 1)
	patch := fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, fixedPods-1)
	if _, err := d.policy.PodUnavailableBudgets(d.namespace()).Patch(ctx, fixed, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := awaitClosed(ctx, d.done); err != nil {
		return err
	}
	if d.err != nil {
		return d.err
	}
	var faults []string
	for name, pods := range map[string]int32{web: webPods, fixed: fixedPods} {
		if err := d.awaitBudget(ctx, name, pods); err != nil {
			return err
		}
		faults = append(faults, d.availability[name].Violations()...)
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}
