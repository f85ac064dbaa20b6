//go:build e2e

package protection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
)

// rounds is how often a storm is repeated; STORM_ROUNDS=200 for a proof.
func rounds(t *testing.T, few int) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("STORM_ROUNDS")); err == nil {
		return n
	}
	return few
}

// barePodsWithBudget makes simulated pods that nobody replaces, of which some have to be
// available, and waits until the others may go.
func barePodsWithBudget(t *testing.T, total, available int) (*namespace, clients) {
	t.Helper()
	n, c := newNamespace(t), connect(t)
	createBarePods(t, c, n.name, total)
	n.apply(t, budgetManifest(fmt.Sprintf("minAvailable: %d", available)))
	n.run(t, "wait", "--for=condition=Guarding", "pub/web", "--timeout=60s")
	awaitAllowed(t, c, n.name, int32(total-available))
	return n, c
}

func setMinAvailable(t *testing.T, c clients, namespace string, n int) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"minAvailable":%d}}`, n)
	if _, err := c.policy.PolicyV1alpha1().PodUnavailableBudgets(namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// One slot, a hundred deletions at once, two replicas of the webhook: exactly
// one passes, each time. Nobody replaces the pods, so nothing gives a slot back.
func TestOneSlotAllowsExactlyOneOfAHundredDeletions(t *testing.T) {
	times := rounds(t, 20)
	total := 100 + times
	n, c := barePodsWithBudget(t, total, total-1)
	for round := range times {
		if round == times/2 {
			disableAffinity(t, n)
		}
		setMinAvailable(t, c, n.name, total-round-1)
		awaitAllowed(t, c, n.name, 1)
		before := runningPods(t, c, n.name)
		if len(before) != total-round {
			t.Fatalf("round %d: %d pods, want %d", round, len(before), total-round)
		}
		s := storm(t, c, n.name, before[:100], 100)
		if s.passed != 1 || s.denied != 99 || len(s.others) > 0 {
			t.Fatalf("round %d: %d passed, %d refused, %d unanswered, others %v", round, s.passed, s.denied, len(s.unanswered), s.others)
		}
	}
}

// disableAffinity has both replicas decide about one budget until the test
// ends, and does not have one hand its requests on to the other.
func disableAffinity(t *testing.T, n *namespace) {
	t.Helper()
	set := func(value string) {
		t.Helper()
		for _, args := range [][]string{
			{"set", "env", "deployment/protection-webhook", "FORWARD_REQUESTS=" + value},
			{"rollout", "status", "deployment/protection-webhook", "--timeout=120s"},
		} {
			ctx := context.WithoutCancel(t.Context()) // a test that ends puts it back
			if r, err := n.Run(ctx, append(args, "--namespace", systemNamespace)...); err != nil || r.Code != 0 {
				t.Errorf("%v\n%s", err, r)
			}
		}
	}
	set("false")
	t.Cleanup(func() { set("true") })
}

// Of 400 pods 300 may go; nobody is refused while there is room, and nobody let
// through when there is none.
func TestExactlyTheAllowedDeletionsPass(t *testing.T) {
	n, c := barePodsWithBudget(t, 400, 100)
	s := storm(t, c, n.name, runningPods(t, c, n.name)[:300], 20)
	if s.passed != 300 {
		t.Errorf("%d of 300 passed, %d refused, %d unanswered, others %v: %v", s.passed, s.denied, len(s.unanswered), s.others, s.lastDenial)
	}
	if s := storm(t, c, n.name, runningPods(t, c, n.name), 20); s.passed != 0 || s.denied != 100 {
		t.Errorf("of 100 that have to stay %d passed, %d were refused, others %v", s.passed, s.denied, s.others)
	}
	awaitAllowed(t, c, n.name, 0)
}

// The webhook answers 150 concurrent clients within the API server's timeout, at the
// first attempt. The benchmark has 600.
func TestClientsAtOnceAreAllAnswered(t *testing.T) {
	n, c := barePodsWithBudget(t, 150, 75)
	s := storm(t, c, n.name, runningPods(t, c, n.name), 150)
	if s.passed != 75 || s.denied != 75 || len(s.unanswered)+len(s.others)+s.notFound > 0 {
		t.Fatalf("%d passed, %d denied, %d without an answer of the webhook, %d not found, others %v", s.passed, s.denied, len(s.unanswered), s.notFound, s.others)
	}
	awaitAllowed(t, c, n.name, 0)
	if left := len(runningPods(t, c, n.name)); left != 75 {
		t.Errorf("%d pods are left, want 75", left)
	}
}

// Replicas of the webhook are killed in the middle of storms, in the first one
// both between a commit and its answer: never over the budget, and when the dust
// has settled no charge is left behind.
func TestKillingWebhooksNeverExceedsTheBudget(t *testing.T) {
	n, c := barePodsWithBudget(t, 300, 200)
	began := time.Now()
	// A storm may end before a look finds anything. Of the 100 pods that may go a
	// few are left for what comes after it.
	for first, killed := 40, false; !killed; first = 10 {
		names := runningPods(t, c, n.name)
		if len(names) < 210+first {
			t.Fatal("the webhooks were never found between a commit and its answer")
		}
		before := duringStorm(t, c, n.name, names[:first], func(ctx context.Context) (err error) {
			killed, err = killBetweenCommitAndAnswer(ctx, c, n.name)
			return err
		})
		t.Logf("between commit and answer, killed %t: %d passed, %d refused, %d unanswered, others %v", killed, before.passed, before.denied, len(before.unanswered), before.others)
	}
	awaitRestarted(t, c, began)
	s := duringStorm(t, c, n.name, runningPods(t, c, n.name), func(ctx context.Context) error { return killWebhooks(ctx, c) })
	left := len(runningPods(t, c, n.name))
	t.Logf("%d passed, %d refused, %d unanswered, others %v; %d pods left", s.passed, s.denied, len(s.unanswered), s.others, left)
	if left < 200 {
		t.Fatalf("%d pods are left, 200 have to be", left)
	}
	n.run(t, "-n", systemNamespace, "rollout", "status", "deployment", "protection-webhook", "--timeout=90s")
	// A charge whose request was never carried out is kept for a minute.
	b := awaitBudget(t, c, n.name, 2*time.Minute, func(b *v1alpha1.PodUnavailableBudget) error {
		if got := len(b.Status.DeletedPods); got > 0 {
			return fmt.Errorf("%d charges are left", got)
		}
		return nil
	})
	if want := int32(left - 200); b.Status.UnavailableAllowed != want {
		t.Errorf("%d allowed, want %d", b.Status.UnavailableAllowed, want)
	}
	if s := storm(t, c, n.name, runningPods(t, c, n.name), 40); s.passed != left-200 {
		t.Errorf("%d of the %d that were left passed, others %v", s.passed, left-200, s.others)
	}
}

// duringStorm does something until a storm of 40 clients is over.
func duringStorm(t *testing.T, c clients, namespace string, names []string, do func(context.Context) error) *stormResult {
	t.Helper()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { done <- do(ctx) }()
	s := storm(t, c, namespace, names, 40)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return s
}

// killBetweenCommitAndAnswer kills all replicas when they have charged the budget for a pod
// and not told anybody. It stops them for a look at what they have done; where
// all that was charged was answered, too, they go on and are stopped again. When
// the context ends before that it kills nobody.
func killBetweenCommitAndAnswer(ctx context.Context, c clients, namespace string) (killed bool, err error) {
	replicas, err := disruption.Component("protection-webhook").Pods(ctx, c.kube)
	if err != nil {
		return false, unlessCanceled(err)
	}
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for i := range replicas {
			resume, err := disruption.Pause(&replicas[i])
			if err != nil {
				return false, err
			}
			defer func() { _ = resume() }() // one that was killed has gone
		}
		if unanswered, err := chargedButRunning(ctx, c, namespace); err != nil || !unanswered {
			return false, err
		}
		for i := range replicas {
			if n, err := disruption.KillProcesses(&replicas[i]); err != nil || n == 0 {
				return false, fmt.Errorf("kill %d processes of %s: %w", n, replicas[i].Name, err)
			}
		}
		return true, nil
	})
	return err == nil, unlessCanceled(err)
}

// unlessCanceled returns an error that is another than the end of the context.
func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// awaitRestarted waits until the replicas that were killed since a time serve again.
func awaitRestarted(t *testing.T, c clients, since time.Time) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		replicas, err := disruption.Component("protection-webhook").Pods(ctx, c.kube)
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(replicas, func(p corev1.Pod) bool {
			return !slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
				return s.Ready && s.State.Running != nil && !s.State.Running.StartedAt.Time.Before(since.Truncate(time.Second))
			})
		}), nil
	})
	if err != nil {
		t.Fatalf("the webhooks are not back: %v", err)
	}
}

// chargedButRunning says whether the budget is charged for a pod that goes on to
// live. Nobody answers now, and what was answered before is carried out at once.
func chargedButRunning(ctx context.Context, c clients, namespace string) (bool, error) {
	for range 10 {
		b, err := c.policy.PolicyV1alpha1().PodUnavailableBudgets(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		list, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return false, err
		}
		alive := slices.ContainsFunc(list.Items, func(p corev1.Pod) bool {
			_, charged := b.Status.DeletedPods[p.UID]
			return charged && p.DeletionTimestamp == nil
		})
		if !alive {
			return false, nil
		}
	}
	return true, nil
}

// killWebhooks kills one replica after the other until the context ends.
func killWebhooks(ctx context.Context, c clients) error {
	for i := 0; ; i++ {
		replicas, err := disruption.Component("protection-webhook").Pods(context.WithoutCancel(ctx), c.kube)
		if err != nil {
			return err
		}
		if len(replicas) > 0 {
			if err := disruption.Delete(context.WithoutCancel(ctx), c.kube, &replicas[i%len(replicas)]); err != nil {
				return err
			}
		}
		pause := time.NewTimer(500 * time.Millisecond)
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		if i >= 2 {
			<-ctx.Done()
			return nil
		}
	}
}
