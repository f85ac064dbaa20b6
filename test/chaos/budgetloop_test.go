//go:build e2e

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// coveredPods is the number of covered pods, minAvailable how many of them
	// have to be available.
	coveredPods, minAvailable = 16, 12
	// budgetClients is the number of clients that delete and evict pods.
	budgetClients = 4
	// refundedWithin is the time limit for the refund of all charges. A charge
	// whose request was not executed expires after a minute.
	refundedWithin = 3 * time.Minute
	// minAdmitted is the minimum number of admitted deletions of a run.
	minAdmitted = 20
)

// budgetLoop deletes and evicts pods that a budget covers, and replaces them.
type budgetLoop struct {
	*fixture
	namespace string
	seed      uint64
	log       func(format string, args ...any)
	// prepared is closed when the budget is in effect.
	prepared     chan struct{}
	availability *Availability
	pods         listers.PodNamespaceLister

	mu      sync.Mutex
	results map[string]int
}

// prepare creates the pods and the budget, and waits until it is in effect.
func (b *budgetLoop) prepare(ctx context.Context) error {
	_, err := b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: b.namespace, Labels: map[string]string{chaosLabel: "true"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", b.namespace, err)
	}
	// The service account of the pods is created after the namespace.
	if err := await(ctx, time.Minute, "the pods of "+b.namespace+" are created", b.fill); err != nil {
		return err
	}
	_, err = b.policy.PodUnavailableBudgets(b.namespace).Create(ctx, &v1alpha1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PodUnavailableBudgetSpec{
			Selector:     &v1alpha1.PodSelector{MatchLabels: map[string]string{"app": name}},
			MinAvailable: new(intstr.FromInt32(minAvailable)),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a budget: %w", err)
	}
	if err := b.awaitBudget(ctx, time.Minute); err != nil {
		return err
	}
	b.availability.Require(minAvailable)
	close(b.prepared)
	return nil
}

// watch starts the watch of the pods.
func (b *budgetLoop) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(b.kube, 0, informers.WithNamespace(b.namespace))
	pods := factory.Core().V1().Pods()
	observe := func(obj any, deleted bool) {
		if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = unknown.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok {
			b.availability.Observe(pod, deleted)
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { observe(obj, false) },
		UpdateFunc: func(_, obj any) { observe(obj, false) },
		DeleteFunc: func(obj any) { observe(obj, true) },
	})
	if err != nil {
		return err
	}
	b.pods = pods.Lister().Pods(b.namespace)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// fill creates simulated pods until there are coveredPods.
func (b *budgetLoop) fill(ctx context.Context) error {
	list, err := b.kube.CoreV1().Pods(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for range coveredPods - len(list.Items) {
		_, err := b.kube.CoreV1().Pods(b.namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{
				NodeSelector:                 map[string]string{"type": "kwok"},
				Tolerations:                  []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}},
				AutomountServiceAccountToken: new(false),
				Containers:                   []corev1.Container{{Name: "sleep", Image: "busybox"}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create a pod of %s: %w", b.namespace, err)
		}
	}
	return nil
}

// run deletes, evicts and replaces pods until ctx ends.
func (b *budgetLoop) run(ctx context.Context) {
	var clients sync.WaitGroup
	for i := range budgetClients {
		r := rand.New(rand.NewPCG(b.seed, 1<<33+uint64(i)))
		clients.Go(func() {
			for sleep(ctx, time.Duration(r.Int64N(int64(600*time.Millisecond)))) {
				b.request(ctx, r)
			}
		})
	}
	clients.Go(func() {
		for sleep(ctx, 500*time.Millisecond) {
			if err := b.fill(ctx); err != nil && ctx.Err() == nil {
				b.log("%v", err)
			}
		}
	})
	clients.Wait()
}

// sleep waits and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// request deletes or evicts a random available pod. Some requests are dry runs,
// and some are canceled by the client. Unavailable pods are not chosen: a request
// for one is not charged, even if the pod becomes available before the API server
// executes the request. Such requests would make the check of the minimum inexact.
func (b *budgetLoop) request(ctx context.Context, r *rand.Rand) {
	pods, err := b.pods.List(labels.Everything())
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !available(p) })
	if err != nil || len(pods) == 0 {
		return
	}
	pod := pods[r.IntN(len(pods))]
	options := metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &pod.UID}, GracePeriodSeconds: new(int64(r.IntN(2))),
	}
	evict, dryRun, timeout := r.IntN(2) == 0, r.IntN(10) == 0, 15*time.Second
	if r.IntN(10) == 0 {
		timeout = time.Duration(r.Int64N(int64(50 * time.Millisecond)))
	}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	} else {
		b.availability.Request(pod.UID)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if evict {
		err = b.kube.CoreV1().Pods(b.namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, DeleteOptions: &options,
		})
	} else {
		err = b.kube.CoreV1().Pods(b.namespace).Delete(ctx, pod.Name, options)
	}
	result := resultOf(err)
	if dryRun {
		result = "dry run " + result
	} else if result == "denied" || result == "not found" {
		b.availability.Denied(pod.UID)
	}
	b.mu.Lock()
	b.results[result]++
	b.mu.Unlock()
}

// resultOf returns the kind of the answer to a request.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "admitted"
	case apierrs.IsForbidden(err), apierrs.IsTooManyRequests(err):
		return "denied"
	case apierrs.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return "denied"
	case apierrs.IsNotFound(err), apierrs.IsConflict(err):
		return "not found"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return "other: " + err.Error()
	}
}

// awaitBudget waits until the budget has no charges, allows all deletions above
// minAvailable and has the condition Guarding. It replaces pods that are deleted meanwhile.
func (b *budgetLoop) awaitBudget(ctx context.Context, within time.Duration) error {
	return await(ctx, within, "the budget of "+b.namespace+" has no charges", func(ctx context.Context) error {
		budget, err := b.policy.PodUnavailableBudgets(b.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := b.fill(ctx); err != nil {
			return err
		}
		pods, err := b.kube.CoreV1().Pods(b.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var now int32
		for i := range pods.Items {
			if available(&pods.Items[i]) {
				now++
			}
		}
		s := budget.Status
		switch {
		case len(s.DeletedPods)+len(s.UnavailablePods) > 0:
			return fmt.Errorf("charged: %v %v", s.DeletedPods, s.UnavailablePods)
		case now < coveredPods:
			return fmt.Errorf("%d pods are available", now)
		case s.CurrentAvailable != now || s.DesiredAvailable != minAvailable || s.UnavailableAllowed != now-minAvailable:
			return fmt.Errorf("%d pods are available, current %d, desired %d, allowed %d", now, s.CurrentAvailable, s.DesiredAvailable, s.UnavailableAllowed)
		case s.ObservedGeneration != budget.Generation || !s.GetCondition(v1alpha1.BudgetGuarding).IsTrue():
			return errors.New("the budget is not guarding")
		}
		return nil
	})
}

// deleteAnswered deletes a pod, which is available, and reports whether the budget allows it. On a busy machine
// the API server may not wait long enough for the webhook, so the deletion is repeated.
func (b *budgetLoop) deleteAnswered(ctx context.Context, pod *corev1.Pod) (allowed bool, err error) {
	b.availability.Request(pod.UID)
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}, GracePeriodSeconds: new(int64)}
	err = await(ctx, time.Minute, "the webhook responds", func(ctx context.Context) error {
		err := b.kube.CoreV1().Pods(b.namespace).Delete(ctx, pod.Name, options)
		if allowed = err == nil; apierrs.IsForbidden(err) {
			b.availability.Denied(pod.UID)
			return nil
		}
		return err
	})
	return allowed, err
}

// check checks the run, and that the budget still admits exactly what it
// allows. No other requests are made meanwhile.
func (b *budgetLoop) check(ctx context.Context) error {
	if err := b.awaitBudget(ctx, refundedWithin); err != nil {
		return err
	}
	pods, err := b.kube.CoreV1().Pods(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	admitted := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		allowed, err := b.deleteAnswered(ctx, pod)
		if err != nil {
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
		if allowed {
			admitted++
		}
	}
	faults := b.availability.Violations()
	if want := coveredPods - minAvailable; admitted != want {
		faults = append(faults, fmt.Sprintf("%d deletions were admitted after the faults, want %d", admitted, want))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log("%s: %v, at least %d pods were available", b.namespace, b.results, b.availability.Lowest())
	if n := b.results["admitted"]; n < minAdmitted {
		faults = append(faults, fmt.Sprintf("%d deletions were admitted during the faults, want at least %d", n, minAdmitted))
	}
	if b.results["denied"] == 0 {
		faults = append(faults, "no deletion was denied during the faults")
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}
