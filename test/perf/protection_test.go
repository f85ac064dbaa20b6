//go:build bench

package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	policy "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// protectionRounds is the number of repetitions of each kind of run. Every
// second round is in reverse order, so that background load and work that a run
// leaves behind (the removal of pods) affect all kinds equally.
const protectionRounds = 5

// refundTimeout is the maximum time until an unused charge is refunded: the API
// server's request timeout and the time to observe it.
const refundTimeout = 2 * time.Minute

// deletionTarget is a namespace in which pods are deleted.
type deletionTarget struct {
	*benchmark
	namespace string
	clients   []kubernetes.Interface
}

// TestProtection measures the cost of a budget for covered pods and for pods
// without a budget.
func TestProtection(t *testing.T) {
	b, ctx := newBenchmark(t)
	m := protection{Machine: machine(), Pods: b.Deletions}
	namespaces := map[string]deletionTarget{}
	for _, n := range []string{"bench-nobudget", "bench-budget"} {
		if err := b.namespace(ctx, n); err != nil {
			t.Fatal(err)
		}
		clients, err := b.deleters(ctx, n, overPods)
		if err != nil {
			t.Fatal(err)
		}
		namespaces[n] = deletionTarget{b, n, clients}
	}
	noBudget, budget := namespaces["bench-nobudget"], namespaces["bench-budget"]
	if err := budget.budget(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.measureIdleRate(ctx); err != nil {
		t.Fatal(err)
	}
	first, err := auditSize(b.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	compared := []func(){
		func() { m.Bare = append(m.Bare, bareRun(ctx, t, noBudget, 20, 0)) },
		func() { m.NoBudget = append(m.NoBudget, noBudget.run(ctx, t, m.Pods, 20, 0)) },
		func() { m.Budget = append(m.Budget, budget.run(ctx, t, m.Pods, 20, 0)) },
	}
	for range b.count(protectionRounds, 2) {
		for _, run := range compared {
			run()
		}
		slices.Reverse(compared)
	}
	m.Writes20 = budget.statusWrites(t, first)
	m.BareAtRate, m.BudgetAtRate = bareRun(ctx, t, noBudget, 100, deletionRate), budget.run(ctx, t, m.Pods, 100, deletionRate)
	m.Bare100 = bareRun(ctx, t, noBudget, 100, 0)
	second, err := auditSize(b.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	before := b.accepted(t)
	m.Budget100 = budget.run(ctx, t, m.Pods, 100, 0)
	m.Connections, m.Writes100 = b.accepted(t)-before, budget.statusWrites(t, second)

	if err := budget.budget(ctx, withinPods-withinAllowed); err != nil {
		t.Fatal(err)
	}
	m.WithinBudget = budget.runSome(ctx, t, withinPods, withinAllowed, 20)
	if err := budget.budget(ctx, overPods-overAllowed); err != nil {
		t.Fatal(err)
	}
	m.OverBudget = budget.runSome(ctx, t, overPods, overPods, overPods)
	if o := m.OverBudget; o.Allowed+o.Denied != overPods {
		t.Errorf("%d of %d clients were answered, the last error: %v", o.Allowed+o.Denied, overPods, o.LastError)
	}
	m.Charges = budget.charges(ctx, t)
	b.keep(t, sectionProtection, m.markdown(), m.figures())
}

// bareRun is a run without webhooks and policies of Breakwater at the API
// server.
func bareRun(ctx context.Context, t *testing.T, d deletionTarget, clients, rate int) (out *deletions) {
	t.Helper()
	if err := d.withoutWebhooks(ctx, func() { out = d.run(ctx, t, d.Deletions, clients, rate) }); err != nil {
		t.Fatal(err)
	}
	return out
}

// run creates pods and deletes all of them. Every deletion must be allowed.
func (d deletionTarget) run(ctx context.Context, t *testing.T, pods, clients, rate int) *deletions {
	t.Helper()
	out := d.deleteSome(ctx, t, pods, pods, clients, rate)
	if out.Allowed != pods {
		t.Fatalf("of %d in %s %d allowed, %d denied, %d failed, %d others; last error: %v",
			pods, d.namespace, out.Allowed, out.Denied, out.Failed, out.Others, out.LastError)
	}
	t.Logf("%s, %d clients: %.0f deletions/s, p99 %s, CPU per deletion: %s", d.namespace, clients, out.rate(),
		out.quantile(0.99).Round(time.Millisecond), out.spentEach())
	return out
}

// runSome creates pods and deletes some of them.
func (d deletionTarget) runSome(ctx context.Context, t *testing.T, pods, deleted, clients int) *deletions {
	t.Helper()
	out := d.deleteSome(ctx, t, pods, deleted, clients, 0)
	t.Logf("%d of %d, %d clients: %d allowed, %d denied, %d failed, %d others, %v", deleted, pods, clients, out.Allowed, out.Denied, out.Failed, out.Others, out.LastError)
	return out
}

func (d deletionTarget) deleteSome(ctx context.Context, t *testing.T, pods, deleted, clients, rate int) *deletions {
	t.Helper()
	names, err := d.pods(ctx, d.namespace, pods)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.synced(ctx, pods); err != nil {
		t.Fatal(err)
	}
	if err := d.awaitIdle(ctx); err != nil { // the work of the creation is not part of a deletion
		t.Fatal(err)
	}
	before, err := d.usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var out *deletions
	if rate > 0 {
		out = deleteAtRate(ctx, d.clients[:clients], d.namespace, names[:deleted], rate)
	} else {
		out = deleteSequentially(ctx, d.clients[:clients], d.namespace, names[:deleted])
	}
	if out.Allowed < pods {
		return out // the caller removes the pods after it has counted the charges
	}
	// A part of a deletion follows its answer: the pod is removed, and its budget is computed. A slow run
	// would have more of it before its last answer than a fast one.
	if err := errors.Join(d.removed(ctx), d.synced(ctx, 0)); err != nil {
		t.Fatal(err)
	}
	after, err := d.usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out.CPU = spent(before, after)
	out.CPU[machineComponent] -= time.Duration(d.idleRate * float64(time.Since(began)))
	return out
}

// removed waits until the deleted pods are removed.
func (d deletionTarget) removed(ctx context.Context) error {
	return d.await(ctx, "the deleted pods are removed", func(ctx context.Context) (bool, error) {
		list, err := d.kube.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, err
	})
}

// budget replaces the budget, in a namespace without pods.
func (d deletionTarget) budget(ctx context.Context, minAvailable int) error {
	all := d.change.PolicyV1alpha1().PodUnavailableBudgets(d.namespace)
	if err := errors.Join(all.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), d.removePods(ctx, d.namespace)); err != nil {
		return err
	}
	minimum := intstr.FromInt32(int32(minAvailable))
	_, err := all.Create(ctx, &policy.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policy.PodUnavailableBudgetSpec{
			Selector: &policy.PodSelector{MatchLabels: map[string]string{"app": name}}, MinAvailable: &minimum,
		},
	}, metav1.CreateOptions{})
	return err
}

// synced waits until the budgets of the namespace, if any, have the condition
// Guarding, count that many available pods and have no charge of a deletion.
func (d deletionTarget) synced(ctx context.Context, pods int) error {
	return d.await(ctx, "the budget of "+d.namespace+" is guarding", func(ctx context.Context) (bool, error) {
		list, err := d.change.PolicyV1alpha1().PodUnavailableBudgets(d.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			p := &list.Items[i]
			if !p.Status.GetCondition(policy.BudgetGuarding).IsTrue() || int(p.Status.CurrentAvailable) != pods || len(p.Status.DeletedPods) > 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// charges returns the number of charges that remain after refundTimeout.
func (d deletionTarget) charges(ctx context.Context, t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, refundTimeout)
	defer cancel()
	left := 0
	err := d.await(ctx, "no charge remains", func(ctx context.Context) (bool, error) {
		p, err := d.change.PolicyV1alpha1().PodUnavailableBudgets(d.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		left = len(p.Status.DeletedPods) + len(p.Status.UnavailablePods)
		return left == 0, nil
	})
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return left
}

// statusWrites counts the webhook's writes of the budget's status.
func (d deletionTarget) statusWrites(t *testing.T, since int64) (n requests) {
	t.Helper()
	made, err := countRequests(d.AuditLog, since, account, d.namespace)
	if err != nil {
		t.Fatal(err)
	}
	for c, w := range made {
		if c.Binary == "protection-webhook" {
			n = n.plus(w)
		}
	}
	return n
}

// accepted returns the number of connections that all protection-webhooks have
// accepted since they started.
func (b *benchmark) accepted(t *testing.T) int {
	t.Helper()
	pods, err := b.kube.CoreV1().Pods(v1alpha1.SystemNamespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=protection-webhook"})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for i := range pods.Items {
		n, err := acceptedBy(string(pods.Items[i].UID))
		if err != nil {
			t.Fatal(fmt.Errorf("count the connections of %s: %w", pods.Items[i].Name, err))
		}
		sum += n
	}
	return sum
}
