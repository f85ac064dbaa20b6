package judge_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	realclock "k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/judge"
	promclient "github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// slow is a Prometheus whose queries end when it is released or their context ends.
type slow struct {
	queries  atomic.Int64
	released chan struct{}
}

func (s *slow) Range(ctx context.Context, _ string, _, _ time.Time, _ time.Duration) ([]samples.Series, error) {
	s.queries.Add(1)
	select {
	case <-s.released:
		return []samples.Series{{Points: []samples.Point{{V: 1}}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask reads an expression, and returns the error.
func ask(ctx context.Context, r *judge.SharedReader, expression string) error {
	_, err := r.Range(ctx, expression, ft.Now(), ft.Now().Add(time.Minute), time.Second)
	return err
}

// A look that has ended would otherwise leave a query for each metric.
func TestAQueryOfWhichNoLookWaitsIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prometheus := &slow{released: make(chan struct{})}
		shared := judge.NewSharedReader(prometheus, 1, clocktesting.NewFakePassiveClock(ft.Now()))
		var looks sync.WaitGroup
		looks.Go(func() {
			if err := ask(t.Context(), shared, "sent"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 100 {
			looks.Go(func() {
				if err := ask(ctx, shared, "queued_"+strconv.Itoa(i)); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		for i := range 100 {
			if err := ask(ctx, shared, "cancelled_"+strconv.Itoa(i)); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		close(prometheus.released)
		looks.Wait()
		synctest.Wait()
		if n := prometheus.queries.Load(); n != 1 {
			t.Errorf("%d queries were sent, want 1", n)
		}
	})
}

func TestAQueryContinuesWhileALookWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prometheus := &slow{released: make(chan struct{})}
		shared := judge.NewSharedReader(prometheus, 1, clocktesting.NewFakePassiveClock(ft.Now()))
		first, cancel := context.WithCancel(t.Context())
		var looks sync.WaitGroup
		looks.Go(func() {
			if err := ask(first, shared, "shared"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		looks.Go(func() {
			if err := ask(t.Context(), shared, "shared"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(prometheus.released)
		looks.Wait()
		if n := prometheus.queries.Load(); n != 1 {
			t.Errorf("%d queries were sent, want 1", n)
		}
	})
}

// The next look sends it again.
func TestAQueryThatEveryLookLeftGivesUpItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prometheus := &slow{released: make(chan struct{})}
		shared := judge.NewSharedReader(prometheus, 1, clocktesting.NewFakePassiveClock(ft.Now()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := ask(ctx, shared, "same"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		var look sync.WaitGroup
		look.Go(func() {
			if err := ask(t.Context(), shared, "same"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if n := prometheus.queries.Load(); n != 2 {
			t.Errorf("%d queries were sent, want 2", n)
		}
		close(prometheus.released)
		look.Wait()
	})
}

// The queries of one namespace are slow, and there are more of them than places.
func TestSlowQueriesOfOneNamespaceDoNotDelayThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prometheus := &slow{released: make(chan struct{})}
		shared := judge.NewSharedReader(prometheus, 10, clocktesting.NewFakePassiveClock(ft.Now()))
		var looks sync.WaitGroup
		look := func(namespace string, queries int) {
			for i := range queries {
				looks.Go(func() {
					if err := ask(promclient.WithNamespace(t.Context(), namespace), shared, "metric_"+strconv.Itoa(i)); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		look("busy", 100)
		before := prometheus.queries.Load()
		look("other", 1)
		if n := prometheus.queries.Load(); before != 9 || n != 10 {
			t.Errorf("%d queries were sent for one namespace, then %d in all, want 9 and 10", before, n)
		}
		close(prometheus.released)
		looks.Wait()
	})
}

// taking is a Prometheus of which each query takes a while.
type taking struct {
	queries atomic.Int64
	each    time.Duration
}

func (p *taking) Range(ctx context.Context, _ string, _, _ time.Time, _ time.Duration) ([]samples.Series, error) {
	p.queries.Add(1)
	select {
	case <-time.After(p.each):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The queries of a look take 80 s one after another. It has 25 s, and wake-ups are 20 s apart. The answers of the first
// look are needed by the last one, a minute later.
func TestARepeatedLookEndsAlthoughPrometheusIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queries, needed = 20, 4
		prometheus := &taking{each: 4 * time.Second}
		shared := judge.NewSharedReader(prometheus, queries, realclock.RealClock{})
		look := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			defer cancel()
			for i := range queries {
				if err := ask(ctx, shared, "metric_"+strconv.Itoa(i)); err != nil {
					return err
				}
			}
			return nil
		}
		var looks sync.WaitGroup
		for n := 1; n < needed; n++ {
			looks.Go(func() {
				if err := look(); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("look %d: %v", n, err)
				}
			})
			time.Sleep(20 * time.Second)
		}
		if err := look(); err != nil {
			t.Errorf("the last look: %v", err)
		}
		looks.Wait()
		if n := prometheus.queries.Load(); n != queries {
			t.Errorf("%d queries were sent, want %d", n, queries)
		}
	})
}

// A later look needs later samples.
func TestAnAnswerIsNotReusedForAnotherTime(t *testing.T) {
	prometheus := &answering{size: 1}
	shared := judge.NewSharedReader(prometheus, 1, clocktesting.NewFakePassiveClock(ft.Now()))
	for _, to := range []time.Time{ft.Now(), ft.Now().Add(5 * time.Second), ft.Now()} {
		if _, err := shared.Range(t.Context(), "metric", ft.Now().Add(-time.Minute), to, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(prometheus.answers); n != 2 {
		t.Errorf("%d queries were sent, want one for each of two times", n)
	}
}

// answering returns the same number of samples for each query, and knows which of its answers are
// in memory.
type answering struct {
	size    int
	answers []weak.Pointer[samples.Point]
}

func (a *answering) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]samples.Series, error) {
	points := make([]samples.Point, a.size)
	a.answers = append(a.answers, weak.Make(&points[0]))
	return []samples.Series{{Points: points}}, nil
}

// inMemory returns the number of answers that are in memory.
func (a *answering) inMemory() int {
	runtime.GC()
	n := 0
	for _, answer := range a.answers {
		if answer.Value() != nil {
			n++
		}
	}
	return n
}

// The keys of later looks are others: their ranges end later.
func TestAnAnswerIsFreedWhenItIsNotReusedAnyMore(t *testing.T) {
	prometheus := &answering{size: 1000}
	clock := clocktesting.NewFakePassiveClock(ft.Now())
	shared := judge.NewSharedReader(prometheus, 1, clock)
	for i := range 100 {
		if err := ask(t.Context(), shared, "metric_"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := prometheus.inMemory(); n != 100 {
		t.Errorf("%d answers are in memory, want 100", n)
	}
	clock.SetTime(ft.Now().Add(30 * time.Second))
	if err := ask(t.Context(), shared, "later"); err != nil {
		t.Fatal(err)
	}
	if n := prometheus.inMemory(); n != 1 {
		t.Errorf("%d answers are in memory, want the last one", n)
	}
	runtime.KeepAlive(shared)
}

func TestTheSizeOfTheAnswersInMemoryIsLimited(t *testing.T) {
	prometheus := &answering{size: 1 << 20} // 16 MiB
	shared := judge.NewSharedReader(prometheus, 1, clocktesting.NewFakePassiveClock(ft.Now()))
	for i := range 20 {
		if err := ask(t.Context(), shared, "metric_"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := prometheus.inMemory(); n < 12 || n > 16 {
		t.Errorf("%d answers of 16 MiB are in memory, want at most 256 MiB", n)
	}
	if err := ask(t.Context(), shared, "metric_19"); err != nil || len(prometheus.answers) != 20 {
		t.Errorf("the last answer was read again, %v", err)
	}
}
