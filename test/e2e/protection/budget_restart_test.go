//go:build e2e

package protection

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

// During a rolling restart of the webhook each request is answered. The API
// server reuses its connections, and reports a request as failed when the process
// closes its connection without a response.
func TestARollingRestartUnderTrafficFailsNoRequest(t *testing.T) {
	n, c := fullBudget(t, 40)
	names := runningPods(t, c, n.name)
	denied := 0
	duringRestart(t, n, c, func() {
		s := storm(t, c, n.name, names, 40)
		if s.denied != len(names) {
			t.Fatalf("%d denied before; then %d passed, %d denied, %d unanswered, others %v", denied, s.passed, s.denied, len(s.unanswered), s.others)
		}
		denied += s.denied
	})
	t.Logf("%d denied", denied)
}

// A terminating replica still gets requests, through connections that the API
// server keeps. It enforces budgets that are created after its termination began.
func TestATerminatingReplicaEnforcesNewBudgets(t *testing.T) {
	busy, c := fullBudget(t, 40)
	names := runningPods(t, c, busy.name)
	budgets := 0
	duringRestart(t, busy, c, func() {
		storm(t, c, busy.name, names, 40) // opens connections to all replicas
		n, _ := fullBudget(t, 20)
		if s := storm(t, c, n.name, runningPods(t, c, n.name), 20); s.passed > 0 {
			t.Fatalf("%d deletions passed beyond the budget", s.passed)
		}
		budgets++
	})
	t.Logf("%d budgets enforced", budgets)
}

// fullBudget creates Ready pods and a budget that allows no deletion.
func fullBudget(t *testing.T, pods int) (*namespace, clients) {
	t.Helper()
	n, c := barePodsWithBudget(t, pods, pods-1) // allows one when all are Ready
	setMinAvailable(t, c, n.name, pods)
	awaitAllowed(t, c, n.name, 0)
	return n, c
}

// duringRestart calls do from the start of a rolling restart of the webhook until
// the former replicas have ended.
func duringRestart(t *testing.T, n *namespace, c clients, do func()) {
	t.Helper()
	replicas := func() []corev1.Pod { // with those that are terminating
		webhook := faultinjection.Component("protection-webhook")
		list, err := c.kube.CoreV1().Pods(webhook.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: webhook.Selector})
		if err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	former := replicas()
	n.run(t, "-n", systemNamespace, "rollout", "restart", "deployment", "protection-webhook")
	for slices.ContainsFunc(replicas(), func(p corev1.Pod) bool {
		return slices.ContainsFunc(former, func(f corev1.Pod) bool { return f.UID == p.UID })
	}) {
		do()
	}
	n.run(t, "-n", systemNamespace, "rollout", "status", "deployment", "protection-webhook", "--timeout=120s")
}
