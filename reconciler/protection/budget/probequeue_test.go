package budget

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// slowProber is a Prober of two replicas, of which b does not answer within wait.
type slowProber struct{ wait time.Duration }

func (p slowProber) Probe(ctx context.Context, _ *v1alpha1.PodUnavailableBudget, _ bool) (answered, all sets.Set[string], err error) {
	select {
	case <-time.After(p.wait):
	case <-ctx.Done():
	}
	return sets.New("a"), sets.New("a", "b"), nil
}

func TestReconcilingNeverWaitsForAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, newBudget(nil), newPod(0, nil, nil), newPod(1, nil, nil))
		w.guarding = newGuardingCheck(slowProber{5 * time.Second})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var probed atomic.Int64
		w.guarding.run(ctx, func(types.NamespacedName) { probed.Add(1) })
		began := time.Now()
		status := w.reconcile(t)
		if took := time.Since(began); took > 0 || status.ObservedGeneration != 1 || status.TotalReplicas != 2 {
			t.Errorf("reconciling took %s; status %+v", took, status)
		}
		time.Sleep(6 * time.Second)
		if n := probed.Load(); n != 1 {
			t.Errorf("%d probes enqueued the budget, want 1", n)
		}
		status = w.reconcile(t)
		if c := status.GetCondition(v1alpha1.BudgetGuarding); c.Message != "no answer yet from b" {
			t.Errorf("after the probe: %+v", c)
		}
	})
}

// probesAgain is a Prober of one replica that answers. It records which probes were repetitions.
type probesAgain []bool

func (p *probesAgain) Probe(_ context.Context, _ *v1alpha1.PodUnavailableBudget, again bool) (answered, all sets.Set[string], err error) {
	*p = append(*p, again)
	return sets.New("a"), sets.New("a"), nil
}

func TestOnlyProbesOfABudgetThatIsGuardingAreRepetitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes probesAgain
		g := newGuardingCheck(&probes)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		g.run(ctx, func(types.NamespacedName) {})
		b := newBudget(nil)
		probe := func(after time.Duration) {
			time.Sleep(after)
			g.check(b)
			synctest.Wait()
		}
		probe(0)
		probe(inFlightWait) // now it is Guarding
		probe(probeInterval)
		b = b.DeepCopy()
		b.Generation++
		probe(0)
		if diff := cmp.Diff(probesAgain{false, false, true, false}, probes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAProbeOfAnEarlierGenerationDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuardingCheck(allReplicas{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		b := newBudget(nil)
		reconcile := func(b *v1alpha1.PodUnavailableBudget) *apis.Condition {
			c, _ := g.check(b)
			synctest.Wait()
			return &c
		}
		g.run(ctx, func(types.NamespacedName) {})
		reconcile(b)
		time.Sleep(inFlightWait)
		reconcile(b)
		if c := reconcile(b); c.Status != corev1.ConditionTrue {
			t.Fatalf("got %+v", c)
		}
		g.prober = slowProber{time.Second}
		changed := b.DeepCopy()
		changed.Generation++
		if c := reconcile(changed); c.Status != corev1.ConditionUnknown {
			t.Errorf("a new generation: %+v", c)
		}
		again := changed.DeepCopy()
		again.Generation++
		reconcile(again)
		time.Sleep(1500 * time.Millisecond) // the first probe has ended, the second has not
		if s := g.get(types.NamespacedName{Namespace: b.Namespace, Name: b.Name}); s.generation != again.Generation || !s.next.IsZero() {
			t.Errorf("the probe of the earlier generation was recorded: %+v", s)
		}
		time.Sleep(time.Second)
		if c := reconcile(again); c.Message != "no answer yet from b" {
			t.Errorf("got %+v", c)
		}
	})
}

// probesOfASilentReplica counts probes.
type probesOfASilentReplica struct{ all, now, most atomic.Int64 }

func (p *probesOfASilentReplica) send(ctx context.Context) error {
	p.all.Add(1)
	p.most.Store(max(p.most.Load(), p.now.Add(1)))
	defer p.now.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	<-ctx.Done()
	return fmt.Errorf("probe: %w", ctx.Err())
}

func TestASilentReplicaDelaysOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budgets = 100
		turns, began := newReplicaTurns(clock.RealClock{}), time.Now()
		var silent probesOfASilentReplica
		var answered atomic.Int64
		done := make(chan struct{})
		for range budgets {
			go func() {
				defer func() { done <- struct{}{} }()
				if err := turns.probe(t.Context(), "b", func() error { return silent.send(t.Context()) }); err == nil {
					t.Error("the silent replica answered")
				}
				if err := turns.probe(t.Context(), "a", func() error { answered.Add(1); return nil }); err != nil {
					t.Error(err)
				}
			}()
		}
		for range budgets {
			<-done
		}
		if took := time.Since(began); took != probeTimeout || silent.all.Load() != 1 || silent.most.Load() != 1 || answered.Load() != budgets {
			t.Errorf("%d budgets took %s: %d probes of the silent replica, %d concurrently; the other answered %d",
				budgets, took, silent.all.Load(), silent.most.Load(), answered.Load())
		}
		time.Sleep(silenceTime)
		if err := turns.probe(t.Context(), "b", func() error { return nil }); err != nil {
			t.Errorf("after the silence: %v", err)
		}
	})
}

func TestTheStateOfAReplicaIsDeletedWithIt(t *testing.T) {
	turns := newReplicaTurns(clock.RealClock{})
	for _, name := range []string{"a", "b"} {
		if err := turns.probe(t.Context(), name, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	turns.keep(sets.New("a"))
	if len(turns.replicas) != 1 {
		t.Errorf("%d replicas, want 1", len(turns.replicas))
	}
}
