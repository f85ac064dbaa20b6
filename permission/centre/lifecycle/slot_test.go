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
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// moments are given out at once, and go by.
type moments struct {
	clock *clocktest.FakeClock
	given []time.Time
}

func (m *moments) Reserve(context.Context, string, api.RateLimit, time.Duration) (time.Time, error) {
	m.given = append(m.given, m.clock.Now())
	return m.clock.Now(), nil
}
func (m *moments) Expired(at time.Time) bool { return m.clock.Since(at) > 50*time.Millisecond }

// slow callers take a second to be made, so often; late are the calls that did
// not come at their moment.
type slow struct {
	*moments
	times, calls, late int
	err                error
}

func (s *slow) New(api.Provider) (provider.Client, error) {
	if s.times--; s.times >= 0 {
		s.clock.Step(time.Second)
	}
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

func (s *slow) Call(context.Context, provider.Call) provider.Result {
	s.calls++
	if s.Expired(s.given[len(s.given)-1]) {
		s.late++
	}
	return provider.Result{Outcome: provider.Done, Reason: provider.ReasonGranted, Sent: true}
}

func TestACallComesAtItsMomentHoweverLongItsCallerTakes(t *testing.T) {
	for _, tc := range []struct {
		name        string
		slow        int
		err         error
		calls, asks int
		state       api.State
	}{
		{"a caller that is there", 0, nil, 1, 1, api.Granted},
		{"one that is made first", 1, nil, 1, 1, api.Granted},
		{"one that is made again when the moment was given", 2, nil, 1, 2, api.Granted},
		{"one that cannot be made", 0, errors.New("no such function"), 0, 1, api.Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			clock := clocktest.NewFakeClock(time.Unix(1_700_000_000, 0).UTC())
			jobs, callers := &line{clock: clock}, &slow{moments: &moments{clock: clock}, times: tc.slow, err: tc.err}
			register(t, s, api.Provider{Meta: api.Meta{Name: "double", Owner: "platform"}, CanRevoke: true, TimeoutSeconds: 1,
				Retry: api.Retry{MaxCalls: 1, BackoffSeconds: 2, PollTimeoutSeconds: 600}})
			e := &lifecycle.Engine{Store: s, Queue: jobs, Limiter: callers, Breaker: open{clock}, Clients: callers, Clock: clock, Random: func() float64 { return 0.5 },
				Notifier: open{clock}, Metrics: open{clock}, Log: slog.New(slog.DiscardHandler)}
			a, _, _, err := e.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: "a", PodUID: "a", PodIPs: []string{"10.0.0.1"}, Set: "web"}, "server")
			if err != nil {
				t.Fatal(err)
			}
			job, ok := jobs.next(clock.Now())
			if !ok {
				t.Fatal("there is no job")
			}
			if err := e.Handle(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			if callers.calls != tc.calls || callers.late > 0 || len(callers.given) != tc.asks {
				t.Errorf("%d calls, %d of them late, %d moments", callers.calls, callers.late, len(callers.given))
			}
			if now, err := s.View(t.Context()).Application(a.ID); err != nil || now.State != tc.state {
				t.Errorf("it is %s, %v", now.State, err)
			}
		})
	}
}
