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
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

// rounds is the number of storms; STORM_ROUNDS sets another number.
func rounds(t *testing.T, few int) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("STORM_ROUNDS")); err == nil {
		return n
	}
	return few
}

// barePodsWithBudget creates simulated pods without an owner and a budget that
// needs some of them available. It waits until the budget allows the others to
// be deleted.
func barePodsWithBudget(t *testing.T, total, available int) (*namespace, clients) {
	t.Helper()
	n, c := newNamespace(t), connect(t)
	createBarePods(t, c, n.name, total)
	n.apply(t, budgetManifest(fmt.Sprintf("minAvailable: %d", available)))
	n.awaitGuarding(t, 5*time.Minute)
	awaitBudget(t, c, n.name, 5*time.Minute, allows(int32(total-available))) // when all pods are Ready
	return n, c
}

func setMinAvailable(t *testing.T, c clients, namespace string, n int) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"minAvailable":%d}}`, n)
	if _, err := c.policy.PolicyV1alpha1().PodUnavailableBudgets(namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// The budget allows one of a hundred concurrent deletions, with two replicas of
// the webhook. No controller replaces the pods, so no deletion is allowed
// again.
func TestOneAllowedDeletionPassesOfAHundredRequests(t *testing.T) {
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
		s := answeredStorm(t, c, n, before[:100], 100)
		if s.passed != 1 || s.denied != 99 || len(s.others) > 0 {
			t.Fatalf("round %d: %d passed, %d denied, others %v", round, s.passed, s.denied, s.others)
		}
	}
}

// disableAffinity makes both replicas decide requests of one budget until the
// test ends: a replica does not forward its requests.
func disableAffinity(t *testing.T, n *namespace) {
	t.Helper()
	set := func(value string) {
		t.Helper()
		for _, args := range [][]string{
			{"set", "env", "deployment/protection-webhook", "FORWARD_REQUESTS=" + value},
			{"rollout", "status", "deployment/protection-webhook", "--timeout=120s"},
		} {
			ctx := context.WithoutCancel(t.Context()) // the cleanup runs after the context ends
			if r, err := n.Run(ctx, append(args, "--namespace", systemNamespace)...); err != nil || r.Code != 0 {
				t.Errorf("%v\n%s", err, r)
			}
		}
	}
	set("false")
	t.Cleanup(func() { set("true") })
}

// The budget allows 300 of 400 pods to be deleted: exactly 300 deletions pass,
// and no more.
func TestExactlyTheAllowedDeletionsPass(t *testing.T) {
	n, c := barePodsWithBudget(t, 400, 100)
	s := answeredStorm(t, c, n, runningPods(t, c, n.name)[:300], 20)
	if s.passed != 300 {
		t.Errorf("%d of 300 passed, %d denied, others %v: %v", s.passed, s.denied, s.others, s.lastDenial)
	}
	if s := answeredStorm(t, c, n, runningPods(t, c, n.name), 20); s.passed != 0 || s.denied != 100 {
		t.Errorf("of 100 deletions beyond the budget %d passed, %d denied, others %v", s.passed, s.denied, s.others)
	}
	awaitAllowed(t, c, n.name, 0)
}

// The webhook answers 150 concurrent clients within the API server's timeout, at the
// first attempt. The benchmark has 600.
//
// All requests begin at once, so they share the timeout of 5 s. A machine that needs more than 1.5 s for
// the same deletions without a budget is too busy: then there are fewer clients.
func TestClientsAtOnceAreAllAnswered(t *testing.T) {
	requests := 150
	for without := stormWithoutBudget(t, requests); without > 1500*time.Millisecond; without /= 2 {
		if requests /= 2; requests < 15 {
			t.Fatalf("a deletion without a budget takes %s", without)
		}
		t.Logf("the deletions took %s without a budget: %d clients", without, requests)
	}
	available := requests / 2
	n, c := barePodsWithBudget(t, requests, available)
	s := storm(t, c, n.name, runningPods(t, c, n.name), requests)
	if s.passed != requests-available || s.denied != available || len(s.unanswered)+len(s.others)+s.notFound > 0 {
		t.Fatalf("%d passed, %d denied, %d without a response of the webhook, %d not found, others %v", s.passed, s.denied, len(s.unanswered), s.notFound, s.others)
	}
	awaitAllowed(t, c, n.name, 0)
	if left := len(runningPods(t, c, n.name)); left != available {
		t.Errorf("%d pods remain, want %d", left, available)
	}
}

// stormWithoutBudget returns how long as many concurrent clients need to delete a pod each.
func stormWithoutBudget(t *testing.T, requests int) time.Duration {
	t.Helper()
	n, c := newNamespace(t), connect(t)
	createBarePods(t, c, n.name, requests)
	n.awaitReady(t, 5*time.Minute)
	names := runningPods(t, c, n.name)
	began := time.Now()
	if s := storm(t, c, n.name, names, requests); s.passed != requests {
		t.Logf("without a budget %d of %d deletions passed, %d without a response of a webhook, others %v", s.passed, requests, len(s.unanswered), s.others)
	}
	return time.Since(began)
}

// Replicas of the webhook are killed during storms, in the first storm both
// between a commit and its response. The budget is never exceeded, and all
// charges are removed in the end.
func TestKillingWebhooksNeverExceedsTheBudget(t *testing.T) {
	n, c := barePodsWithBudget(t, 300, 200)
	began := time.Now()
	// A storm may end before a check finds such a charge. Then the storm is repeated with new pods.
	// 60 of the 100 allowed deletions remain for the second half.
	for storms, killed := 1, false; !killed; storms++ {
		if storms > 40 {
			t.Fatal("no webhook was between a commit and its response")
		}
		names := runningPods(t, c, n.name)[:40]
		before := duringStorm(t, c, n.name, names, func(ctx context.Context) (err error) {
			killed, err = killBetweenCommitAndAnswer(ctx, c, n.name)
			return err
		})
		t.Logf("between commit and response, killed %t: %d passed, %d denied, %d unanswered, others %v", killed, before.passed, before.denied, len(before.unanswered), before.others)
		if !killed {
			createBarePods(t, c, n.name, 300-len(runningPods(t, c, n.name)))
			awaitAllowed(t, c, n.name, 100)
		}
	}
	awaitRestarted(t, c, began)
	s := duringStorm(t, c, n.name, runningPods(t, c, n.name), func(ctx context.Context) error { return killWebhooks(ctx, c) })
	left := len(runningPods(t, c, n.name))
	t.Logf("%d passed, %d denied, %d unanswered, others %v; %d pods remain", s.passed, s.denied, len(s.unanswered), s.others, left)
	if left < 200 {
		t.Fatalf("%d pods remain, want at least 200", left)
	}
	n.run(t, "-n", systemNamespace, "rollout", "status", "deployment", "protection-webhook", "--timeout=90s")
	// The charge of a request that the API server did not execute expires after
	// a minute.
	b := awaitBudget(t, c, n.name, 2*time.Minute, func(b *v1alpha1.PodUnavailableBudget) error {
		if got := len(b.Status.DeletedPods); got > 0 {
			return fmt.Errorf("%d charges remain", got)
		}
		return nil
	})
	if want := int32(left - 200); b.Status.UnavailableAllowed != want {
		t.Errorf("%d allowed, want %d", b.Status.UnavailableAllowed, want)
	}
	if s := answeredStorm(t, c, n, runningPods(t, c, n.name), 40); s.passed != left-200 {
		t.Errorf("%d of %d allowed deletions passed, others %v", s.passed, left-200, s.others)
	}
}

// duringStorm calls do while 40 clients delete pods, and cancels it when they
// are done.
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

// killBetweenCommitAndAnswer kills all replicas when they have charged the
// budget for a pod and have not responded. It pauses the replicas for each
// check and resumes them when all charges are answered. It kills none if the
// context ends first.
func killBetweenCommitAndAnswer(ctx context.Context, c clients, namespace string) (killed bool, err error) {
	replicas, err := faultinjection.Component("protection-webhook").Pods(ctx, c.kube)
	if err != nil {
		return false, unlessCanceled(err)
	}
	err = wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for i := range replicas {
			resume, err := faultinjection.Pause(&replicas[i])
			if err != nil {
				return false, err
			}
			defer func() { _ = resume() }() // a killed replica has no process
		}
		if unanswered, err := chargedButRunning(ctx, c, namespace); err != nil || !unanswered {
			return false, err
		}
		for i := range replicas {
			if n, err := faultinjection.KillProcesses(&replicas[i]); err != nil || n == 0 {
				return false, fmt.Errorf("kill %d processes of %s: %w", n, replicas[i].Name, err)
			}
		}
		return true, nil
	})
	return err == nil, unlessCanceled(err)
}

// unlessCanceled returns the error unless the context was canceled.
func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// awaitRestarted waits until all replicas were restarted since a time and are
// Ready.
func awaitRestarted(t *testing.T, c clients, since time.Time) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		replicas, err := faultinjection.Component("protection-webhook").Pods(ctx, c.kube)
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
		t.Fatalf("the webhooks did not restart: %v", err)
	}
}

// chargedButRunning reports whether the budget is charged for a pod that is not
// terminating. The replicas are paused, and the API server executes admitted
// requests at once.
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
		running := slices.ContainsFunc(list.Items, func(p corev1.Pod) bool {
			_, charged := b.Status.DeletedPods[p.UID]
			return charged && p.DeletionTimestamp == nil
		})
		if !running {
			return false, nil
		}
	}
	return true, nil
}

// killWebhooks deletes up to three replicas, one at a time, until the context
// ends.
func killWebhooks(ctx context.Context, c clients) error {
	for i := 0; ; i++ {
		replicas, err := faultinjection.Component("protection-webhook").Pods(context.WithoutCancel(ctx), c.kube)
		if err != nil {
			return err
		}
		if len(replicas) > 0 {
			if err := faultinjection.Delete(context.WithoutCancel(ctx), c.kube, &replicas[i%len(replicas)]); err != nil {
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
