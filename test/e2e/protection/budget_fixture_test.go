//go:build e2e || controlplane

package protection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const systemNamespace = "altershieldoperator-system"

// clients have no client-side rate limit, so that a storm is concurrent.
type clients struct {
	kube   kubernetes.Interface
	policy versioned.Interface
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
	return clients{kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)}
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
	n.run(t, "rollout", "status", "deployment", "web", "--timeout=60s")
	n.apply(t, budget)
	n.run(t, "wait", "--for=condition=Guarding", "pub/web", "--timeout=60s")
}

// podNames returns the names of the pods that are not terminating.
func (n *namespace) podNames(t *testing.T) []string {
	t.Helper()
	return strings.Fields(n.run(t, "get", "pods", "-l", "app=web", "-o",
		`go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}`))
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
	var last error
	var b *v1alpha1.PodUnavailableBudget
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		if b, last = c.policy.PolicyV1alpha1().PodUnavailableBudgets(namespace).Get(ctx, "web", metav1.GetOptions{}); last != nil {
			return false, nil
		}
		if b.Status.ObservedGeneration != b.Generation {
			last = errors.New("not synced")
			return false, nil
		}
		last = holds(b)
		return last == nil, nil
	}); err != nil {
		t.Fatalf("not within %s: %v; %+v; pods that are not Ready: %v", within, last, b.Status, notReady(t, c, namespace))
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
	list, err := c.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	return names
}
