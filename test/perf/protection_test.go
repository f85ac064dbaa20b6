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

// protectionRounds is the number of repetitions of the compared runs. Every
// second round has the reverse order, so that other load on the machine and the
// after-effects of a run are distributed evenly.
const protectionRounds = 5

// settled is the maximum time until an unused charge is refunded: the API
// server's request timeout and the time to observe it.
const settled = 2 * time.Minute

// deleting is a namespace in which pods are deleted.
type deleting struct {
	*bed
	namespace string
	clients   []kubernetes.Interface
}

// TestProtection measures the cost of a budget for covered pods and for pods
// without a budget.
func TestProtection(t *testing.T) {
	b, ctx := newBed(t)
	m := protection{Machine: machine(), Pods: b.Deletions}
	beds := map[string]deleting{}
	for _, n := range []string{"bench-open", "bench-budget"} {
		if err := b.namespace(ctx, n); err != nil {
			t.Fatal(err)
		}
		clients, err := b.deleters(ctx, n, crowdPods)
		if err != nil {
			t.Fatal(err)
		}
		beds[n] = deleting{b, n, clients}
	}
	unguarded, guarded := beds["bench-open"], beds["bench-budget"]
	if err := guarded.budget(ctx, 0); err != nil {
		t.Fatal(err)
	}
	first, err := auditSize(b.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	compared := []func(){
		func() { m.Bare = append(m.Bare, bareRun(ctx, t, unguarded, 20, 0)) },
		func() { m.Unguarded = append(m.Unguarded, unguarded.run(ctx, t, m.Pods, 20, 0)) },
		func() { m.Guarded = append(m.Guarded, guarded.run(ctx, t, m.Pods, 20, 0)) },
	}
	for range protectionRounds {
		for _, run := range compared {
			run()
		}
		slices.Reverse(compared)
	}
	m.Writes20 = guarded.statusWrites(t, first)
	m.BareOpen, m.GuardedOpen = bareRun(ctx, t, unguarded, 100, openRate), guarded.run(ctx, t, m.Pods, 100, openRate)
	m.Bare100 = bareRun(ctx, t, unguarded, 100, 0)
	second, err := auditSize(b.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	before := b.accepted(t)
	m.Guarded100 = guarded.run(ctx, t, m.Pods, 100, 0)
	m.Handshakes, m.Writes100 = b.accepted(t)-before, guarded.statusWrites(t, second)

	if err := guarded.budget(ctx, roomPods-roomAllowed); err != nil {
		t.Fatal(err)
	}
	m.Room = guarded.some(ctx, t, roomPods, roomAllowed, 20)
	if err := guarded.budget(ctx, crowdPods-crowdAllowed); err != nil {
		t.Fatal(err)
	}
	m.Crowd = guarded.some(ctx, t, crowdPods, crowdPods, crowdPods)
	m.Left = guarded.charges(ctx, t)
	b.keep(t, sectionProtection, m.markdown())
}

// bareRun is a run without webhooks and policies of Breakwater at the API
// server.
func bareRun(ctx context.Context, t *testing.T, d deleting, clients, rate int) (out *deletions) {
	t.Helper()
	if err := d.without(ctx, func() { out = d.run(ctx, t, d.Deletions, clients, rate) }); err != nil {
		t.Fatal(err)
	}
	return out
}

// run makes pods and deletes them all; none is to be refused.
func (d deleting) run(ctx context.Context, t *testing.T, pods, clients, rate int) *deletions {
	t.Helper()
	out := d.deleteSome(ctx, t, pods, pods, clients, rate)
	if out.Passed != pods {
		t.Fatalf("of %d in %s %d passed, %d were refused, %d broke, %d others; last: %v",
			pods, d.namespace, out.Passed, out.Refused, out.Broken, out.Others, out.Last)
	}
	t.Logf("%s, %d clients: %.0f deletes/s, p99 %s, CPU a delete: %s", d.namespace, clients, out.rate(),
		out.quantile(0.99).Round(time.Millisecond), out.spentEach())
	return out
}

// some makes pods and deletes a part of them.
func (d deleting) some(ctx context.Context, t *testing.T, pods, deleted, clients int) *deletions {
	t.Helper()
	out := d.deleteSome(ctx, t, pods, deleted, clients, 0)
	t.Logf("%d of %d, %d clients: %d passed, %d refused, %d broke, %d others, %v", deleted, pods, clients, out.Passed, out.Refused, out.Broken, out.Others, out.Last)
	return out
}

func (d deleting) deleteSome(ctx context.Context, t *testing.T, pods, deleted, clients, rate int) *deletions {
	t.Helper()
	names, err := d.pods(ctx, d.namespace, pods)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.synced(ctx, pods); err != nil {
		t.Fatal(err)
	}
	before, err := d.usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out *deletions
	if rate > 0 {
		out = open(ctx, d.clients[:clients], d.namespace, names[:deleted], rate)
	} else {
		out = closed(ctx, d.clients[:clients], d.namespace, names[:deleted])
	}
	after, err := d.usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out.CPU = spent(before, after)
	if deleted < pods || out.Refused > 0 {
		return out // who measures the charges empties
	}
	if err := d.emptied(ctx, d.namespace); err != nil {
		t.Fatal(err)
	}
	return out
}

// budget makes the budget anew, over no pods.
func (d deleting) budget(ctx context.Context, minAvailable int) error {
	all := d.change.PolicyV1alpha1().PodUnavailableBudgets(d.namespace)
	if err := errors.Join(all.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), d.emptied(ctx, d.namespace)); err != nil {
		return err
	}
	least := intstr.FromInt32(int32(minAvailable))
	_, err := all.Create(ctx, &policy.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policy.PodUnavailableBudgetSpec{
			Selector: &policy.PodSelector{MatchLabels: map[string]string{"app": name}}, MinAvailable: &least,
		},
	}, metav1.CreateOptions{})
	return err
}

// synced waits until the budgets of the namespace, if any, guard and count the pods.
func (d deleting) synced(ctx context.Context, pods int) error {
	return d.await(ctx, "the budget of "+d.namespace+" guards", func(ctx context.Context) (bool, error) {
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

// charges returns how many charges are left when everything is over.
func (d deleting) charges(ctx context.Context, t *testing.T) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	left := 0
	err := d.await(ctx, "no charge is left", func(ctx context.Context) (bool, error) {
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

// statusWrites are those of the webhook to the budget.
func (d deleting) statusWrites(t *testing.T, since int64) (n writes) {
	t.Helper()
	made, err := countWrites(d.AuditLog, since, account, d.namespace)
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

// accepted returns how many connections the webhooks of protection have
// accepted since they began.
func (b *bed) accepted(t *testing.T) int {
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
