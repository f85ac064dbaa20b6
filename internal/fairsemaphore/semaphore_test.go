package fairsemaphore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhichKeyGetsAFreePlace(t *testing.T) {
	for name, tc := range map[string]struct {
		places int
		// steps are +key for a further waiter and -key for a release.
		steps string
		// want are the keys that got a place, in order.
		want string
	}{
		"the last place goes to a key without one":            {1, "+a +a", "a"},
		"one key leaves a place free":                         {3, "+a +a +a +a", "a a"},
		"the free place is for a key without a place":         {3, "+a +a +a +b +b", "a a b"},
		"a released place is left free again":                 {3, "+a +a +a +b +b -a", "a a b"},
		"a key without a place gets the last one":             {3, "+a +a +a +b +b -a +c", "a a b c"},
		"a key whose work is fast keeps its place":            {3, "+a +a +a +b -b +b -b +b", "a a b b b"},
		"the key with the fewest places is the first":         {6, "+a +a +a +a +a +a +a +b +b +b -a -a -a", "a a a a a b b b"},
		"many waiters of one key count as one":                {1, "+a +a +a +a +b -a -b -a", "a b a a"},
		"of equal keys, the one that released least recently": {1, "+a +b +c +b +c -a -b -c", "a b c b"},
		"a key gets its only place again":                     {1, "+a -a +a", "a a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(tc.places)
			type waiter struct {
				key   string
				ready chan struct{}
			}
			var waiting []waiter
			var got []string
			for _, step := range strings.Fields(tc.steps) {
				key := step[1:]
				if step[0] == '-' {
					s.Release(key)
				} else {
					waiting = append(waiting, waiter{key, s.join(key)})
				}
				var left []waiter
				for _, w := range waiting {
					select {
					case <-w.ready:
						got = append(got, w.key)
					default:
						left = append(left, w)
					}
				}
				waiting = left
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("places were given to %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAWaiterWhoseContextEndsGetsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1)
		if err := s.Acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, key := range []string{"a", "b"} {
			if err := s.Acquire(ctx, key); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", key, err)
			}
		}
		s.Release("a")
		if err := s.Acquire(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the context ended: %v", err)
		}
		if s.free != 1 || len(s.shares) != 0 {
			t.Errorf("%d places are free, %d keys are left", s.free, len(s.shares))
		}
	})
}

func TestThePlacesAreNeverExceededAndAllReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 4
		s := New(places)
		var mu sync.Mutex
		inUse, most, done := 0, 0, 0
		var work sync.WaitGroup
		for i := range 200 {
			work.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				defer cancel()
				key := strconv.Itoa(i % 7)
				if s.Acquire(ctx, key) != nil {
					return
				}
				mu.Lock()
				inUse++
				most, done = max(most, inUse), done+1
				mu.Unlock()
				time.Sleep(time.Duration(1+i%3) * time.Millisecond)
				mu.Lock()
				inUse--
				mu.Unlock()
				s.Release(key)
			})
		}
		work.Wait()
		if most != places || done == 0 || done == 200 || s.free != places || len(s.shares) != 0 {
			t.Errorf("%d places in use, %d of 200 had one, %d are free, %d keys are left", most, done, s.free, len(s.shares))
		}
	})
}
