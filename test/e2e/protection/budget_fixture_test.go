//go:build e2e || controlplane

package protection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/poll"
)

const systemNamespace = "altershieldoperator-system"

// clients have no client-side rate limit, so that a storm is concurrent.
type clients struct {
	kube    kubernetes.Interface
	policy  versioned.Interface
	objects dynamic.Interface
}

func connect(t *testing.T) clients {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	config.WarningHandler = rest.NoWarnings{}
	return clients{kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)}
}

// budgetManifest returns a budget with a selector and limits.
func budgetManifest(limits string) string {
	return `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {selector: {matchLabels: {app: web}}, ` + limits + `}}`
}

// deploymentManifest returns a Deployment web of simulated pods.
func deploymentManifest(replicas int, strategy string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: %d, strategy: %s, selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: %s}}}`, replicas, strategy, simulatedPodSpec)
}

// applyWithBudget applies the workload and the budget, and waits for condition
// Guarding.
func (n *namespace) applyWithBudget(t *testing.T, workload, budget string) {
	t.Helper()
	n.apply(t, workload)
	n.awaitRollout(t)
	n.apply(t, budget)
	n.awaitGuarding(t, shortTimeout)
}

// awaitRollout waits until all pods of Deployment web are updated and available, as `kubectl rollout status` does.
func (n *namespace) awaitRollout(t *testing.T) {
	t.Helper()
	n.await(t, "the rollout is complete", func() error {
		d, err := n.kube.AppsV1().Deployments(n.name).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s, want := d.Status, *d.Spec.Replicas; s.ObservedGeneration < d.Generation || s.UpdatedReplicas < want || s.Replicas > s.UpdatedReplicas || s.AvailableReplicas < s.UpdatedReplicas {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// awaitGuarding waits until the budget has condition Guarding.
func (n *namespace) awaitGuarding(t *testing.T, within time.Duration) {
	t.Helper()
	awaitBudget(t, n.clients, n.name, within, func(b *v1alpha1.PodUnavailableBudget) error {
		if guarding := b.Status.GetCondition(v1alpha1.BudgetGuarding); !guarding.IsTrue() {
			return fmt.Errorf("condition Guarding is %+v", guarding)
		}
		return nil
	})
}

// awaitReady waits until all pods of web are Ready.
func (n *namespace) awaitReady(t *testing.T, within time.Duration) {
	t.Helper()
	poll.Require(t, 250*time.Millisecond, within, "all pods are Ready", func(context.Context) error {
		if left := notReady(t, n.clients, n.name); len(left) > 0 {
			return fmt.Errorf("pods that are not Ready: %v", left)
		}
		return nil
	})
}

// podNames returns the names of the pods that are not terminating.
func (n *namespace) podNames(t *testing.T) []string {
	t.Helper()
	return runningPods(t, n.clients, n.name)
}

// awaitAllowed waits until the budget allows a number of pods and has no
// charges.
func awaitAllowed(t *testing.T, c clients, namespace string, allowed int32) *v1alpha1.PodUnavailableBudget {
	t.Helper()
	return awaitBudget(t, c, namespace, shortTimeout, allows(allowed))
}

// allows returns an error unless the budget allows a number of pods and has no
// charges.
func allows(allowed int32) func(*v1alpha1.PodUnavailableBudget) error {
	return func(b *v1alpha1.PodUnavailableBudget) error {
		if s := b.Status; s.UnavailableAllowed != allowed || len(s.DeletedPods)+len(s.UnavailablePods) > 0 {
			return fmt.Errorf("%d allowed, charged %v %v", s.UnavailableAllowed, s.DeletedPods, s.UnavailablePods)
		}
		return nil
	}
}

func awaitBudget(t *testing.T, c clients, namespace string, within time.Duration, holds func(*v1alpha1.PodUnavailableBudget) error) *v1alpha1.PodUnavailableBudget {
	t.Helper()
	var b *v1alpha1.PodUnavailableBudget
	if err := poll.Until(t.Context(), 50*time.Millisecond, within, "the budget is as expected", func(ctx context.Context) (err error) {
		if b, err = c.policy.PolicyV1alpha1().PodUnavailableBudgets(namespace).Get(ctx, "web", metav1.GetOptions{}); err != nil {
			return err
		}
		if b.Status.ObservedGeneration != b.Generation {
			return errors.New("not synced")
		}
		return holds(b)
	}); err != nil {
		t.Fatalf("%v; %+v; pods that are not Ready: %v", err, b.Status, notReady(t, c, namespace))
	}
	return b
}

// notReady returns the names, phases and nodes of the pods that are not Ready.
func notReady(t *testing.T, c clients, namespace string) (all []string) {
	t.Helper()
	list, err := c.kube.CoreV1().Pods(namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Error(err)
		return nil
	}
	for i := range list.Items {
		if p := &list.Items[i]; !workload.PodReady(p) {
			all = append(all, fmt.Sprintf("%s (%s on %q)", p.Name, p.Status.Phase, p.Spec.NodeName))
		}
	}
	return all
}

// createBarePods creates simulated pods without an owner, 20 at a time. Each has a new name: kwok deletes a
// terminating pod by its name, perhaps after the API server has removed it.
func createBarePods(t *testing.T, c clients, namespace string, count int) {
	t.Helper()
	var wg sync.WaitGroup
	jobs := make(chan struct{})
	for range 20 {
		wg.Go(func() {
			for range jobs {
				p := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web"}},
					Spec: corev1.PodSpec{
						NodeSelector: map[string]string{"type": "kwok"}, TerminationGracePeriodSeconds: new(int64),
						Tolerations: []corev1.Toleration{{Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists}},
						Containers:  []corev1.Container{{Name: "sleep", Image: "busybox"}},
					},
				}
				if _, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
					t.Errorf("create a pod: %v", err)
				}
			}
		})
	}
	for range count {
		jobs <- struct{}{}
	}
	close(jobs)
	wg.Wait()
}

// stormResult counts the responses to a storm.
type stormResult struct {
	mu             sync.Mutex
	passed, denied int
	others         []error
	// lastDenial is the last denial.
	lastDenial error
	notFound   int
	// unanswered are the pods for which the webhook did not respond, or did not decide.
	unanswered []string
}

func (s *stormResult) count(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.passed++
	case apierrs.IsForbidden(err):
		s.denied++
		s.lastDenial = err
	case apierrs.IsNotFound(err):
		s.notFound++
	case apierrs.IsInternalError(err), apierrs.HasStatusCause(err, admission.CauseUndecided): // no response or no decision of the webhook
		s.unanswered = append(s.unanswered, name)
	default:
		s.others = append(s.others, err)
	}
}

// storm deletes the pods with a number of concurrent clients.
func storm(t *testing.T, c clients, namespace string, names []string, concurrency int) *stormResult {
	t.Helper()
	s := &stormResult{}
	s.deletePods(t, c, namespace, names, concurrency)
	return s
}

// answeredStorm is a storm that repeats a deletion until the webhook responds. On a
// busy machine the API server may not wait long enough.
func answeredStorm(t *testing.T, c clients, n *namespace, names []string, concurrency int) *stormResult {
	t.Helper()
	s := storm(t, c, n.name, names, concurrency)
	if len(s.unanswered) > 0 {
		t.Logf("%d of %d deletions are repeated, because the webhook did not respond in time", len(s.unanswered), len(names))
	}
	n.await(t, "the webhook responds to each deletion", func() error {
		left := s.unanswered
		s.unanswered = nil
		s.deletePods(t, c, n.name, left, concurrency)
		if len(s.unanswered) > 0 {
			return fmt.Errorf("%d deletions are unanswered", len(s.unanswered))
		}
		return nil
	})
	return s
}

func (s *stormResult) deletePods(t *testing.T, c clients, namespace string, names []string, concurrency int) {
	t.Helper()
	var wg sync.WaitGroup
	jobs := make(chan string)
	start := make(chan struct{})
	for range concurrency {
		wg.Go(func() {
			<-start
			for name := range jobs {
				s.count(name, c.kube.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
			}
		})
	}
	close(start)
	for _, name := range names {
		jobs <- name
	}
	close(jobs)
	wg.Wait()
}

// runningPods returns the names of the pods that are not terminating.
func runningPods(t *testing.T, c clients, namespace string) []string {
	t.Helper()
	return livePods(t, c.kube, namespace, metav1.ListOptions{LabelSelector: "app=web"})
}
