//go:build e2e

package protection

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
)

// During a rolling restart of the webhook each request is answered. The API
// server reuses its connections, and reports a request as failed when the process
// closes its connection without a response.
func TestARollingRestartUnderTrafficFailsNoRequest(t *testing.T) {
	n, c := fullBudget(t, 40)
	names := runningPods(t, c, n.name)
	denied := 0
	duringRestart(t, n, c, func(r *restart) {
		s := r.storm(t, n.name, names, 40)
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
	duringRestart(t, busy, c, func(r *restart) {
		// It opens connections to all replicas. A terminating replica closes each after the next answer.
		if !slices.ContainsFunc(r.replicas(t), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }) {
			storm(t, c, busy.name, names, 40)
		}
		n, _ := fullBudget(t, 20)
		if s := r.storm(t, n.name, runningPods(t, c, n.name), 20); s.passed > 0 {
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

// restart is a rolling restart of the webhook.
type restart struct {
	clients
	// former are the replicas that existed before.
	former []types.UID
	// denied is the number of requests that former replicas denied in storms at whose end they terminated.
	denied float64
}

// duringRestart calls do from the start of a rolling restart of the webhook until
// the former replicas have ended. A terminating replica has to answer requests of its storms.
func duringRestart(t *testing.T, n *namespace, c clients, do func(*restart)) {
	t.Helper()
	r := &restart{clients: c}
	for _, p := range r.replicas(t) {
		r.former = append(r.former, p.UID)
	}
	n.run(t, "-n", systemNamespace, "rollout", "restart", "deployment", "protection-webhook")
	for slices.ContainsFunc(r.replicas(t), func(p corev1.Pod) bool { return slices.Contains(r.former, p.UID) }) {
		do(r)
	}
	n.run(t, "-n", systemNamespace, "rollout", "status", "deployment", "protection-webhook", "--timeout=120s")
	if t.Logf("%v denied by terminating replicas", r.denied); r.denied == 0 {
		t.Error("no terminating replica answered a request")
	}
}

// replicas returns the replicas of the webhook, with those that are terminating.
func (r *restart) replicas(t *testing.T) []corev1.Pod {
	t.Helper()
	webhook := faultinjection.Component("protection-webhook")
	list, err := r.kube.CoreV1().Pods(webhook.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: webhook.Selector})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// storm is a storm that counts the requests that terminating replicas deny. A replica whose termination begins
// in a storm may have closed its connections before the next one, so all its denials in this storm count.
func (r *restart) storm(t *testing.T, namespace string, names []string, concurrency int) *stormResult {
	t.Helper()
	before := r.deniedByFormer(t, func(corev1.Pod) bool { return true })
	s := storm(t, r.clients, namespace, names, concurrency)
	after := r.deniedByFormer(t, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	for pod, denied := range before {
		r.denied += max(0, after[pod]-denied) // after has only replicas that still run
	}
	return s
}

// deniedByFormer returns the numbers of requests that former replicas denied, of those that are
// selected. A replica that forwarded a request counts it, too.
func (r *restart) deniedByFormer(t *testing.T, selected func(corev1.Pod) bool) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, p := range r.replicas(t) {
		if !selected(p) || !slices.Contains(r.former, p.UID) {
			continue
		}
		values, err := metricValues(t.Context(), r.kube, p.Name, "breakwater_admission_requests_total{", `allowed="false"`)
		if err != nil {
			continue // it has ended
		}
		out[p.Name] = 0
		for _, v := range values {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil {
				t.Fatal(err)
			}
			out[p.Name] += n
		}
	}
	return out
}
