package lifecycle_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// line is a queue whose jobs are done in the order in which they are due, by a
// clock that jumps there.
type line struct {
	clock *clocktest.FakeClock
	jobs  []dueJob
}

type dueJob struct {
	queue.Job
	due time.Time
}

func (l *line) Enqueue(_ context.Context, _ *sql.Tx, _ string, job queue.Job, due time.Time) (int64, error) {
	l.jobs = append(l.jobs, dueJob{job, due})
	return int64(len(l.jobs)), nil
}

// next takes the job that is due first, if it is before a time, and jumps there.
func (l *line) next(before time.Time) (queue.Job, bool) {
	slices.SortStableFunc(l.jobs, func(a, b dueJob) int { return a.due.Compare(b.due) })
	if len(l.jobs) == 0 || l.jobs[0].due.After(before) {
		return queue.Job{}, false
	}
	job := l.jobs[0]
	l.jobs = l.jobs[1:]
	if job.due.After(l.clock.Now()) {
		l.clock.SetTime(job.due)
	}
	return job.Job, true
}

// open has no limit and never rests.
type open struct{ clock *clocktest.FakeClock }

func (o open) Reserve(context.Context, string, api.RateLimit, time.Duration) (time.Time, error) {
	return o.clock.Now(), nil
}
func (o open) Expired(time.Time) bool                                   { return false }
func (o open) OpenFor(string) time.Duration                             { return 0 }
func (o open) Do(_ string, call func() bool) bool                       { call(); return true }
func (o open) Notify(string)                                            {}
func (o open) GrantState(string, string, api.State)                     {}
func (o open) AddressReused(string)                                     {}
func (o open) Call(string, provider.Op, provider.Result, time.Duration) {}

// outage is a provider that is down until a time.
type outage struct {
	clock *clocktest.FakeClock
	until time.Time
	calls map[string][]time.Time // of each application
}

func (o *outage) New(api.Provider) (provider.Client, error) { return o, nil }

func (o *outage) Call(_ context.Context, c provider.Call) provider.Result {
	o.calls[c.Application] = append(o.calls[c.Application], o.clock.Now())
	if o.clock.Now().Before(o.until) {
		return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderError, Message: "down", Sent: true}
	}
	return provider.Result{Outcome: provider.Done, Reason: provider.ReasonGranted, Sent: true}
}

// register puts a set of one permission into a store.
func register(t *testing.T, s *store.Store, p api.Provider) {
	t.Helper()
	put := func(kind store.Kind, m api.Meta, o any) {
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), func(tx store.Tx) error {
			return tx.Create(store.Object{Kind: kind, Name: m.Name, Owner: m.Owner, Body: body, Version: 1})
		}); err != nil {
			t.Fatal(err)
		}
	}
	put(store.KindProvider, p.Meta, p)
	permission := api.Permission{Meta: api.Meta{Name: "db", Owner: "team-a"}, Provider: p.Name}
	put(store.KindPermission, permission.Meta, permission)
	set := api.PermissionSet{Meta: api.Meta{Name: "web", Owner: "team-a"}, Permissions: []string{"db"}}
	put(store.KindSet, set.Meta, set)
}

// The asking side is the init-action-server's breaker: three tries at once,
// then one for each interval of its backoff, 2 min doubled up to an hour.
func TestAProviderThatIsDownForAnHourIsCalledNoMoreThanTheBackoffSays(t *testing.T) {
	const pods, maxCalls = 10, 5
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := time.Unix(1_700_000_000, 0).UTC()
	clock := clocktest.NewFakeClock(began)
	jobs, down := &line{clock: clock}, &outage{clock: clock, until: began.Add(time.Hour), calls: map[string][]time.Time{}}
	register(t, s, api.Provider{Meta: api.Meta{Name: "double", Owner: "platform"}, CanRevoke: true, TimeoutSeconds: 1,
		Retry: api.Retry{MaxCalls: maxCalls, BackoffSeconds: 2, PollTimeoutSeconds: 600}})
	e := &lifecycle.Engine{Store: s, Queue: jobs, Limiter: open{clock}, Breaker: open{clock}, Clients: down, Clock: clock, Random: func() float64 { return 0.5 },
		Notifier: open{clock}, Metrics: open{clock}, Log: slog.New(slog.DiscardHandler)}

	asks := map[int]time.Time{} // when a pod asks next
	failures := map[int]int{}
	ids := make([]string, pods)
	for n := range pods {
		asks[n] = began.Add(time.Duration(n) * 100 * time.Millisecond)
	}
	requests := 0
	for len(asks) > 0 {
		// What comes first: somebody asks, or a job is due.
		first := -1
		for n, at := range asks {
			if first < 0 || at.Before(asks[first]) || at.Equal(asks[first]) && n < first {
				first = n
			}
		}
		if job, ok := jobs.next(asks[first]); ok {
			if err := e.Handle(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if asks[first].After(clock.Now()) {
			clock.SetTime(asks[first])
		}
		r := api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: fmt.Sprint(first), PodUID: fmt.Sprint(first), PodIPs: []string{fmt.Sprintf("10.0.0.%d", first)}, Set: "web"}
		a, _, asked, err := e.Request(t.Context(), r, "server")
		if err != nil {
			t.Fatal(err)
		}
		ids[first] = a.ID
		switch {
		case a.State == api.Granted:
			delete(asks, first)
		case asked == lifecycle.RequestUnchanged:
			asks[first] = clock.Now().Add(30 * time.Second) // A poll.
		default:
			requests++
			failures[first]++
			asks[first] = clock.Now().Add(interval(failures[first]))
		}
		if clock.Now().After(began.Add(4 * time.Hour)) {
			t.Fatalf("%d pods did not recover", len(asks))
		}
	}

	total := 0
	for n, id := range ids {
		calls := down.calls[id]
		total += len(calls)
		// 2, 4, 8, 16 s and half of each at random: an attempt takes 45 s.
		for i := 1; i < len(calls) && calls[i].Before(down.until); i++ {
			if gap, least := calls[i].Sub(calls[i-1]), 3*time.Second<<((i-1)%maxCalls); i%maxCalls != 0 && gap < least {
				t.Errorf("pod %d: call %d comes %s after the one before, not %s", n, i, gap, least)
			}
		}
		if last := calls[len(calls)-1]; last.After(down.until.Add(time.Hour)) {
			t.Errorf("pod %d recovered %s after the provider did", n, last.Sub(down.until))
		}
	}
	if most := pods * (7*maxCalls + 1); total > most {
		t.Errorf("%d calls for %d attempts; at most %d", total, requests, most)
	}
	// 3 attempts at once, then after 3, 6, 12, 24 and 48 min, or fewer.
	if most := pods * 8; requests > most {
		t.Errorf("%d attempts, at most %d", requests, most)
	}
	t.Logf("%d attempts, %d calls", requests, total)
}

// interval until a pod asks again after so many failures.
func interval(failures int) time.Duration {
	if failures < 3 {
		return 90 * time.Second
	}
	return min(3*time.Minute<<(failures-3), time.Hour)
}
