package ratelimit

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/database"
)

func TestMain(m *testing.M) { database.Run(m) }

// peak returns the maximum number of slots within one second.
func peak(slots []time.Time) int {
	slices.SortFunc(slots, time.Time.Compare)
	most, from := 0, 0
	for i, m := range slots {
		for m.Sub(slots[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// Two limiters stand for two replicas.
func TestReplicasTogetherStayBelowTheLimit(t *testing.T) {
	limit := api.RateLimit{PerSecond: 100, Burst: 5}
	for name, address := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "a.db"), "postgres": database.Postgres(t)} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var mu sync.Mutex
			var slots []time.Time
			var all sync.WaitGroup
			for _, p := range []*Limiter{New(s, clock.RealClock{}), New(s, clock.RealClock{})} {
				for range 100 {
					all.Go(func() {
						at, err := p.Reserve(t.Context(), "double", limit, time.Minute)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						slots = append(slots, at)
					})
				}
			}
			all.Wait()
			if n := peak(slots); n > 105 || n < 50 {
				t.Errorf("%d slots in the peak second, want 50 to 105", n)
			}
			if took := slots[len(slots)-1].Sub(slots[0]); took < 1900*time.Millisecond || took > 10*time.Second {
				t.Errorf("200 slots within %s, want 1.9 s to 10 s", took)
			}
		})
	}
}

func TestAnExpiredSlotIsNotUsed(t *testing.T) {
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := clocktest.NewFakeClock(time.Unix(1_700_000_000, 0))
	p, limit := New(s, now), api.RateLimit{PerSecond: 10, Burst: 3}
	next := func(horizon time.Duration) time.Time {
		t.Helper()
		at, err := p.Reserve(context.Background(), "double", limit, horizon)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	// A burst of three after the lead, then one for each interval.
	var offsets []time.Duration
	for range 5 {
		offsets = append(offsets, next(time.Minute).Sub(now.Now())-slotLead)
	}
	interval := Interval(limit)
	for i, want := range []time.Duration{0, 0, 0, interval, 2 * interval} {
		if diff := (offsets[i] - want).Abs(); diff > time.Millisecond {
			t.Errorf("slot %d is after %s, want %s", i, offsets[i], want)
		}
	}
	var noSlot NoSlot
	if _, err := p.Reserve(context.Background(), "double", limit, interval); !errors.As(err, &noSlot) || !noSlot.Until.After(now.Now()) {
		t.Errorf("slot beyond the horizon: %v", err)
	}
	// Each provider has its own slots.
	if at, err := p.Reserve(context.Background(), "other", limit, slotLead); err != nil || !at.Equal(now.Now().Add(slotLead)) {
		t.Errorf("slot of another provider: %s %v", at, err)
	}
	at := next(time.Minute)
	now.Step(at.Sub(now.Now()) + maxLateness + time.Millisecond)
	if !p.Expired(at) {
		t.Error("the slot is not expired")
	}
	if again := next(time.Minute); !again.After(at) {
		t.Errorf("the expired slot was returned again: %s", again)
	}
}

// slowClock advances by step at each reading, as if the store were slow.
type slowClock struct {
	*clocktest.FakeClock
	step time.Duration
}

func (c slowClock) Now() time.Time {
	c.Step(c.step)
	return c.FakeClock.Now()
}

func (c slowClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

// Otherwise each slot is expired when it is reserved, and no call is ever made.
func TestASlotIsReservedEvenIfTheStoreIsSlow(t *testing.T) {
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := slowClock{clocktest.NewFakeClock(time.Unix(1_700_000_000, 0)), 60 * time.Millisecond}
	l := New(s, now)
	at, err := l.Reserve(t.Context(), "double", api.RateLimit{PerSecond: 50, Burst: 1}, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if late := now.FakeClock.Now().Sub(at); late > maxLateness {
		t.Errorf("the slot was %s ago when it was reserved", late)
	}
}
