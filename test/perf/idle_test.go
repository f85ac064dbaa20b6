//go:build bench

package perf

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	// settledFor is longer than the two minutes after which the Go runtime collects the garbage
	// of a process that allocates nothing.
	settledFor = 150 * time.Second
	// settledRSS is the memory that a settled process may return to the system in settledFor.
	settledRSS = mib
	// settledPoll is how often the memory is read; a read of all processes costs CPU.
	settledPoll = 2 * time.Second
)

// TestIdle measures what Breakwater costs while nothing happens: it watches many pods, each
// with a budget and a grant.
func TestIdle(t *testing.T) {
	b, ctx := newBenchmark(t)
	m := idle{Machine: machine(), Pods: b.IdlePods}
	guarded, err := b.guardedPods(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	if m.Grants, err = guarded.grant(ctx); err != nil {
		t.Fatal(err)
	}
	if m.Budgets, err = guarded.guarding(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.awaitSettled(ctx); err != nil {
		t.Fatal(err)
	}
	since, err := auditSize(b.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.ownUsage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := elapse(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	after, err := b.ownUsage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	made, err := countRequests(b.AuditLog, since, account, metav1.NamespaceAll)
	if err != nil {
		t.Fatal(err)
	}
	m.measure(before, after)
	m.Writes = rollout{Requests: made}.total().Writes
	b.keep(t, sectionIdle, m.markdown(), m.figures())
}

// ownUsage returns the CPU and memory of each component of Breakwater.
func (b *benchmark) ownUsage(ctx context.Context) (map[string]usage, error) {
	all, err := b.usage(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := b.kube.CoreV1().Pods(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	own := map[string]usage{}
	for i := range pods.Items {
		component := componentOf(&pods.Items[i])
		own[component] = all[component]
	}
	return own, nil
}

// awaitSettled waits until no component of Breakwater has returned memory to the system for
// settledFor: the garbage of the creation of the pods is collected.
func (b *benchmark) awaitSettled(ctx context.Context) error {
	lowest := map[string]int64{}
	since, read := time.Now(), time.Time{}
	return b.await(ctx, "the processes have settled", func(ctx context.Context) (bool, error) {
		if time.Since(read) < settledPoll {
			return false, nil
		}
		read = time.Now()
		now, err := b.ownUsage(ctx)
		if err != nil {
			return false, err
		}
		for component, u := range now {
			if low, known := lowest[component]; !known || u.RSS <= low-settledRSS {
				lowest[component], since = u.RSS, time.Now()
				b.log("%s has %d MiB", component, u.RSS/mib)
			}
		}
		return time.Since(since) > settledFor, nil
	})
}

// awaitIdle waits until the controller has processed the new pods: it uses less
// than 10 % of a core for five seconds.
func (b *benchmark) awaitIdle(ctx context.Context) error {
	const span = 5 * time.Second
	last, at := time.Duration(0), time.Time{}
	return b.await(ctx, "the controller is idle", func(ctx context.Context) (bool, error) {
		if time.Since(at) < span {
			return false, nil
		}
		now, err := b.usage(ctx)
		if err != nil {
			return false, err
		}
		used := now["controller"].CPU - last
		quiet := !at.IsZero() && used < span/10
		last, at = now["controller"].CPU, time.Now()
		return quiet, nil
	})
}
