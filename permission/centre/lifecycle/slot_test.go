package lifecycle_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// fakeLimiter gives the current time as slot; the fake clock may advance before
// the call.
type fakeLimiter struct {
	clock *clocktest.FakeClock
	slots []time.Time
}

func (m *fakeLimiter) Begin(store.Tx, string, api.RateLimit) (*ratelimit.Slots, error) {
	m.slots = append(m.slots, m.clock.Now())
	return ratelimit.NewSlots(m.clock.Now(), m.clock.Now(), time.Second, func(time.Time) error { return nil }), nil
}
func (m *fakeLimiter) Reserve(context.Context, string, api.RateLimit, time.Duration) (time.Time, error) {
	m.slots = append(m.slots, m.clock.Now())
	return m.clock.Now(), nil
}
func (m *fakeLimiter) Expired(at time.Time) bool { return m.clock.Since(at) > 50*time.Millisecond }

// slowClients takes a second to build a client for the first slowBuilds builds.
// late counts calls outside of their slot.
type slowClients struct {
	*fakeLimiter
	slowBuilds, calls, late int
	err                     error
}

func (s *slowClients) Client(api.Provider) (provider.Client, error) {
	if s.slowBuilds--; s.slowBuilds >= 0 {
		s.clock.Step(time.Second)
	}
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

func (s *slowClients) Call(context.Context, provider.Call) provider.Result {
	s.calls++
	if s.Expired(s.slots[len(s.slots)-1]) {
		s.late++
	}
	return provider.Result{Outcome: provider.Done, Reason: provider.ReasonGranted, Sent: true}
}

func TestACallIsMadeInItsSlotHoweverSlowTheClientIsBuilt(t *testing.T) {
	for _, tc := range []struct {
		name         string
		slowBuilds   int
		err          error
		calls, slots int
		state        api.State
	}{
		{"cached client", 0, nil, 1, 1, api.Granted},
		{"client built before the reservation", 1, nil, 1, 1, api.Granted},
		{"client built again after the reservation", 2, nil, 1, 2, api.Granted},
		{"client that cannot be built", 0, errors.New("no such function"), 0, 1, api.Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			clock := clocktest.NewFakeClock(time.Unix(1_700_000_000, 0).UTC())
			clients := &slowClients{fakeLimiter: &fakeLimiter{clock: clock}, slowBuilds: tc.slowBuilds, err: tc.err}
			register(t, s, api.Provider{Meta: api.Meta{Name: "double", Owner: "platform"}, CanRevoke: true, TimeoutSeconds: 1,
				Retry: api.Retry{MaxCalls: 1, BackoffSeconds: 2, PollTimeoutSeconds: 600}})
			e := &lifecycle.Engine{Store: s, Limiter: clients, Breaker: noLimits{clock}, Clients: clients, Clock: clock, Random: func() float64 { return 0.5 },
				Notifier: noLimits{clock}, Metrics: noLimits{clock}, Log: slog.New(slog.DiscardHandler)}
			a, _, _, err := e.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: "a", PodUID: "a", PodIPs: []string{"10.0.0.1"}, Set: "web"}, "server")
			if err != nil {
				t.Fatal(err)
			}
			if !runNext(t, e, clock.Now()) {
				t.Fatal("no step is due")
			}
			if clients.calls != tc.calls || clients.late > 0 || len(clients.slots) != tc.slots {
				t.Errorf("%d calls, %d of them late, %d slots", clients.calls, clients.late, len(clients.slots))
			}
			if now, err := s.View(t.Context()).Application(a.ID); err != nil || now.State != tc.state {
				t.Errorf("state %s, want %s, error %v", now.State, tc.state, err)
			}
		})
	}
}
