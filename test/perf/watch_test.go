//go:build bench

package perf

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// idlePods is the largest number of pods of a Deployment of TestIdle.
const idlePods = 1000

// TestIdle measures the cost of watching many idle pods.
func TestIdle(t *testing.T) {
	b, ctx := newBenchmark(t)
	m := idle{Machine: machine(), Pods: b.IdlePods}
	for left, i := b.IdlePods, 1; left > 0; left, i = left-idlePods, i+1 {
		namespace := fmt.Sprintf("bench-idle-%d", i)
		if err := b.namespace(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		if err := b.deploy(ctx, namespace, min(left, idlePods)); err != nil {
			t.Fatal(err)
		}
		if err := b.optIn(ctx, namespace); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.awaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
	since, err := auditSize(b.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	select { // measure one idle minute
	case <-time.After(time.Minute):
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	after, err := b.usage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m.RSS, m.CPU = after["controller"].RSS, spent(before, after)["controller"]
	made, err := countRequests(b.AuditLog, since, account, v1alpha1.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	m.Writes = rollout{Requests: made}.total().Writes
	b.keep(t, sectionIdle, m.markdown(), m.figures())
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
