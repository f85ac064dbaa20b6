package batch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/batch"
)

// recorder records the batches. A run takes a second.
type recorder struct {
	mu               sync.Mutex
	batches          [][]int
	running, maximum int
}

func (r *recorder) run(_ context.Context, items []int) (again bool) {
	r.mu.Lock()
	r.batches = append(r.batches, items)
	r.running++
	r.maximum = max(r.maximum, r.running)
	r.mu.Unlock()
	time.Sleep(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	if slices.Contains(items, -1) {
		panic("a bug")
	}
	return len(items) > 1 && slices.Contains(items, -2)
}

var limits = batch.Limits{Size: 4, Runs: 2, Waiting: 10, Alone: 4, Timeout: time.Minute}

func TestItemsThatWaitShareARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q batch.Queue[int]
		var r recorder
		var callers sync.WaitGroup
		for n := range 12 {
			callers.Go(func() {
				if err := q.Do(t.Context(), limits, n, r.run); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // so that the items arrive one after the other
		}
		callers.Wait()
		want := [][]int{{0}, {1}, {2, 3, 4, 5}, {6, 7, 8, 9}, {10, 11}}
		if r.maximum != limits.Runs || len(r.batches) != len(want) {
			t.Fatalf("%d runs at a time: %v", r.maximum, r.batches)
		}
		slices.SortFunc(r.batches, slices.Compare[[]int])
		for i, b := range r.batches {
			if !slices.Equal(b, want[i]) {
				t.Errorf("batches %v, want %v", r.batches, want)
			}
		}
	})
}

func TestTooManyItemsAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q batch.Queue[int]
		var r recorder
		for n := range limits.Runs + limits.Waiting {
			go func() {
				if err := q.Do(t.Context(), limits, n, r.run); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if err := q.Do(t.Context(), limits, 99, r.run); !errors.Is(err, batch.ErrFull) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if err := q.Do(t.Context(), limits, 100, r.run); err != nil {
			t.Errorf("when no item waits: %v", err)
		}
	})
}

// An item that waits is not run; that of a run ends with the run, so that its result is known.
func TestACallerThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q batch.Queue[int]
		var r recorder
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		one := limits
		one.Runs = 1
		var callers sync.WaitGroup
		callers.Go(func() {
			began := time.Now()
			if err := q.Do(ctx, one, 0, r.run); err != nil || time.Since(began) != time.Second {
				t.Errorf("the item of the run: %v after %s", err, time.Since(began))
			}
		})
		synctest.Wait()
		began := time.Now()
		if err := q.Do(ctx, one, 1, r.run); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("the item that waits: %v after %s", err, time.Since(began))
		}
		callers.Wait()
		synctest.Wait()
		if len(r.batches) != 1 || len(r.batches[0]) != 1 {
			t.Errorf("batches %v", r.batches)
		}
	})
}

func TestAPanicEndsNeitherTheQueueNorTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q batch.Queue[int]
		var r recorder
		if err := q.Do(t.Context(), limits, -1, r.run); err == nil || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("got %v", err)
		}
		if err := q.Do(t.Context(), limits, 1, r.run); err != nil {
			t.Error(err)
		}
	})
}

func TestARunIsBoundedByItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q batch.Queue[int]
		began := time.Now()
		if err := q.Do(t.Context(), limits, 1, func(ctx context.Context, _ []int) bool { <-ctx.Done(); return false }); err != nil || time.Since(began) != limits.Timeout {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// The callers with the latest deadline must not wait any longer, nor the others fail earlier.
func TestARunEndsAtTheLatestDeadlineOfItsCallers(t *testing.T) {
	for name, tc := range map[string]struct {
		deadlines []time.Duration
		want      time.Duration
	}{
		"one caller":                {[]time.Duration{10 * time.Second}, 10 * time.Second},
		"two callers":               {[]time.Duration{20 * time.Second, 10 * time.Second}, 20 * time.Second},
		"after the timeout":         {[]time.Duration{10 * time.Second, time.Hour}, limits.Timeout},
		"a caller without deadline": {[]time.Duration{10 * time.Second, 0}, limits.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q batch.Queue[int]
				one := limits
				one.Runs = 1
				began, release := time.Now(), make(chan struct{})
				run := func(ctx context.Context, items []int) bool {
					if slices.Equal(items, []int{-1}) {
						<-release // until the other items wait
						return false
					}
					<-ctx.Done()
					if took := time.Since(began); took != tc.want {
						t.Errorf("the run of %d items ended after %s, want %s", len(items), took, tc.want)
					}
					return false
				}
				var callers sync.WaitGroup
				do := func(ctx context.Context, n int) {
					callers.Go(func() {
						if err := q.Do(ctx, one, n, run); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				do(t.Context(), -1)
				for n, deadline := range tc.deadlines {
					ctx := t.Context()
					if deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, deadline)
						defer cancel()
					}
					do(ctx, n)
				}
				close(release)
				callers.Wait()
			})
		})
	}
}

// The items that are run alone end when their own runs do, and the other runs go on.
func TestTheItemsOfARunThatFailedAreRunAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q batch.Queue[int]
		var r recorder
		one := limits
		one.Runs = 1
		run := func(ctx context.Context, items []int) bool {
			again := r.run(ctx, items)
			if slices.Equal(items, []int{-2}) {
				<-ctx.Done() // for a minute
			}
			return again
		}
		began, took := time.Now(), map[int]time.Duration{}
		var mu sync.Mutex
		var callers sync.WaitGroup
		for _, n := range []int{0, 1, -2, 2, 3, 4, 5} {
			callers.Go(func() {
				if err := q.Do(t.Context(), one, n, run); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				took[n] = time.Since(began).Truncate(time.Second)
			})
			synctest.Wait()
		}
		callers.Wait()
		// 0, then 1, -2, 2 and 3 together, then 4 and 5, while the others are run alone.
		want := map[int]time.Duration{0: 1, 4: 3, 5: 3, 1: 3, 2: 3, 3: 3, -2: 62}
		for n, seconds := range want {
			if took[n] != seconds*time.Second {
				t.Errorf("item %d took %s, want %d s", n, took[n], seconds)
			}
		}
	})
}
