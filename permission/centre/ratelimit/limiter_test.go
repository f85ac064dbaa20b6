package ratelimit

import (
	"context"
	"errors"
	"log/slog"
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
			for _, p := range []*Limiter{New(s, clock.RealClock{}, slog.New(slog.DiscardHandler)), New(s, clock.RealClock{}, slog.New(slog.DiscardHandler))} {
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
	p, limit := New(s, now, slog.New(slog.DiscardHandler)), api.RateLimit{PerSecond: 10, Burst: 3}
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
	if _, err := p.Reserve(context.Background(), "double", limit, interval); !errors.As(err, &noSlot) || !noSlot.Next.After(now.Now()) {
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

// A centre whose clock was ahead leaves a time that no limiter reserves, for example when it moves to
// another node.
func TestANextCallThatIsTooFarAheadIsBounded(t *testing.T) {
	for name, address := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "a.db"), "postgres": database.Postgres(t)} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			next := func(set func(store.Tx, time.Time) error) (next time.Time) {
				t.Helper()
				if err := s.Write(t.Context(), func(tx store.Tx) (err error) {
					if next, err = tx.LockNextCall("double"); err != nil {
						return err
					}
					return set(tx, next)
				}); err != nil {
					t.Fatal(err)
				}
				return next
			}
			next(func(tx store.Tx, _ time.Time) error { return tx.SetNextCall("double", time.Now().Add(20*time.Minute)) })
			limit := api.RateLimit{PerSecond: 10, Burst: 3}
			var noSlot NoSlot
			_, err = New(s, clock.RealClock{}, slog.New(slog.DiscardHandler)).Reserve(t.Context(), "double", limit, time.Second)
			latest := time.Now().Add(maxLead + Interval(limit))
			if !errors.As(err, &noSlot) || noSlot.Next.After(latest) {
				t.Errorf("%v, want a slot until %s", err, latest)
			}
			// Otherwise the time moves with the clock.
			if stored := next(func(store.Tx, time.Time) error { return nil }); stored.After(latest) {
				t.Errorf("the next call is stored as %s, want %s at most", stored, latest)
			}
		})
	}
}

// A limiter never takes back a slot that it, or that of another replica, has reserved.
func TestReservedSlotsAreNotTooFarAhead(t *testing.T) {
	for name, limit := range map[string]api.RateLimit{
		"one call in 20 s": {PerSecond: 0.05, Burst: 1}, "one call in 4 s": {PerSecond: 0.25, Burst: 1}, "many calls": {PerSecond: 50, Burst: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			now := clocktest.NewFakeClock(time.Unix(1_700_000_000, 0))
			replicas := []*Limiter{New(s, now, slog.New(slog.DiscardHandler)), New(s, now, slog.New(slog.DiscardHandler))}
			var slots []time.Time
			for n := 0; ; n++ {
				at, err := replicas[n%2].Reserve(t.Context(), "double", limit, time.Hour)
				var noSlot NoSlot
				if errors.As(err, &noSlot) {
					at = noSlot.Next // it is not reserved, and the next one is the same
				} else if err != nil {
					t.Fatal(err)
				}
				if n >= limit.Burst && at.Sub(slots[n-1]) < Interval(limit)-time.Millisecond {
					t.Fatalf("slot %d is at %s, the one before at %s", n, at, slots[n-1])
				}
				if slots = append(slots, at); err != nil {
					break
				}
			}
			if last := slots[len(slots)-1].Sub(now.Now()); last < maxLead {
				t.Errorf("the slots end after %s, want %s", last, maxLead)
			}
		})
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
	l := New(s, now, slog.New(slog.DiscardHandler))
	at, err := l.Reserve(t.Context(), "double", api.RateLimit{PerSecond: 50, Burst: 1}, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if late := now.FakeClock.Now().Sub(at); late > maxLateness {
		t.Errorf("the slot was %s ago when it was reserved", late)
	}
}
