package coalesce_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/coalesce"
)

// recorder records the groups. Each takes a second.
type recorder struct {
	mu                  sync.Mutex
	groups              [][]int
	processing, maximum int
}

func (r *recorder) process(_ context.Context, items []int) (again bool) {
	r.mu.Lock()
	r.groups = append(r.groups, items)
	r.processing++
	r.maximum = max(r.maximum, r.processing)
	r.mu.Unlock()
	time.Sleep(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processing--
	if slices.Contains(items, -1) {
		panic("a bug")
	}
	return len(items) > 1 && slices.Contains(items, -2)
}

var limits = coalesce.Limits{Size: 4, Groups: 2, Waiting: 10, Alone: 4, Timeout: time.Minute}

func TestItemsThatWaitShareAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q coalesce.Queue[int]
		var r recorder
		var callers sync.WaitGroup
		for n := range 12 {
			callers.Go(func() {
				if err := q.Do(t.Context(), limits, n, r.process); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // so that the items arrive one after the other
		}
		callers.Wait()
		want := [][]int{{0}, {1}, {2, 3, 4, 5}, {6, 7, 8, 9}, {10, 11}}
		if r.maximum != limits.Groups || len(r.groups) != len(want) {
			t.Fatalf("%d groups at a time: %v", r.maximum, r.groups)
		}
		slices.SortFunc(r.groups, slices.Compare[[]int])
		for i, b := range r.groups {
			if !slices.Equal(b, want[i]) {
				t.Errorf("groups %v, want %v", r.groups, want)
			}
		}
	})
}

func TestTooManyItemsAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q coalesce.Queue[int]
		var r recorder
		for n := range limits.Groups + limits.Waiting {
			go func() {
				if err := q.Do(t.Context(), limits, n, r.process); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if err := q.Do(t.Context(), limits, 99, r.process); !errors.Is(err, coalesce.ErrFull) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if err := q.Do(t.Context(), limits, 100, r.process); err != nil {
			t.Errorf("when no item waits: %v", err)
		}
	})
}

// An item that waits is not processed; one in a group ends with the group, so that its result is known.
func TestACallerThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q coalesce.Queue[int]
		var r recorder
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		one := limits
		one.Groups = 1
		var callers sync.WaitGroup
		callers.Go(func() {
			began := time.Now()
			if err := q.Do(ctx, one, 0, r.process); err != nil || time.Since(began) != time.Second {
				t.Errorf("the item in a group: %v after %s", err, time.Since(began))
			}
		})
		synctest.Wait()
		began := time.Now()
		if err := q.Do(ctx, one, 1, r.process); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("the item that waits: %v after %s", err, time.Since(began))
		}
		callers.Wait()
		synctest.Wait()
		if len(r.groups) != 1 || len(r.groups[0]) != 1 {
			t.Errorf("groups %v", r.groups)
		}
	})
}

func TestAPanicEndsNeitherTheQueueNorTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q coalesce.Queue[int]
		var r recorder
		if err := q.Do(t.Context(), limits, -1, r.process); err == nil || !strings.Contains(err.Error(), "a bug") {
			t.Errorf("got %v", err)
		}
		if err := q.Do(t.Context(), limits, 1, r.process); err != nil {
			t.Error(err)
		}
	})
}

func TestAGroupIsBoundedByItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q coalesce.Queue[int]
		began := time.Now()
		if err := q.Do(t.Context(), limits, 1, func(ctx context.Context, _ []int) bool { <-ctx.Done(); return false }); err != nil || time.Since(began) != limits.Timeout {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// The callers with the latest deadline must not wait any longer, nor the others fail earlier.
func TestAGroupEndsAtTheLatestDeadlineOfItsCallers(t *testing.T) {
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
				var q coalesce.Queue[int]
				one := limits
				one.Groups = 1
				began, release := time.Now(), make(chan struct{})
				process := func(ctx context.Context, items []int) bool {
					if slices.Equal(items, []int{-1}) {
						<-release // until the other items wait
						return false
					}
					<-ctx.Done()
					if took := time.Since(began); took != tc.want {
						t.Errorf("the group of %d items ended after %s, want %s", len(items), took, tc.want)
					}
					return false
				}
				var callers sync.WaitGroup
				do := func(ctx context.Context, n int) {
					callers.Go(func() {
						if err := q.Do(ctx, one, n, process); err != nil {
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

// The items that are processed alone end when their own groups do, and other groups do not wait.
func TestTheItemsOfAGroupThatFailedAreProcessedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q coalesce.Queue[int]
		var r recorder
		one := limits
		one.Groups = 1
		process := func(ctx context.Context, items []int) bool {
			again := r.process(ctx, items)
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
				if err := q.Do(t.Context(), one, n, process); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				took[n] = time.Since(began).Truncate(time.Second)
			})
			synctest.Wait()
		}
		callers.Wait()
		// 0, then 1, -2, 2 and 3 together, then 4 and 5, while the others are processed alone.
		want := map[int]time.Duration{0: 1, 4: 3, 5: 3, 1: 3, 2: 3, 3: 3, -2: 62}
		for n, seconds := range want {
			if took[n] != seconds*time.Second {
				t.Errorf("item %d took %s, want %d s", n, took[n], seconds)
			}
		}
	})
}
