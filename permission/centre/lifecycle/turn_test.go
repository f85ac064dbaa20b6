package lifecycle_test

import (
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

func TestAPostponedStepHasOneJobThatIsDueLater(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.Breaker = openBreaker{}
	a, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: "uid", PodIPs: []string{"10.0.0.1"}, Set: "web"}, "server")
	if err != nil {
		t.Fatal(err)
	}
	began := f.Clock.Now()
	job, ok := f.jobs.next(began)
	if !ok {
		t.Fatal("there is no job")
	}
	if err := f.Handle(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if n := len(f.jobs.jobs); n != 1 || f.jobs.jobs[0].due.Sub(began) < 15*time.Second {
		t.Errorf("jobs: %+v", f.jobs.jobs)
	}
	grants, err := f.Store.View(t.Context()).Grants(a.ID)
	if err != nil || !grants[0].Began.Equal(began) || grants[0].Due.Sub(began) < 15*time.Second {
		t.Errorf("grants: %+v, %v", grants, err)
	}
}

func TestAnAttemptFailsWhenItWasPostponedTooLong(t *testing.T) {
	f := newSetsFixture(t, provider.Done) // PollTimeoutSeconds is 0
	f.Breaker = openBreaker{}
	a, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: "uid", PodIPs: []string{"10.0.0.1"}, Set: "web"}, "server")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []api.State{api.Requested, api.Failed} {
		job, ok := f.jobs.next(f.Clock.Now().Add(time.Minute))
		if !ok {
			t.Fatal("there is no job")
		}
		if err := f.Handle(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if now, err := f.Store.View(t.Context()).Application(a.ID); err != nil || now.State != want {
			t.Errorf("the application is %s (%s), want %s (%v)", now.State, now.Reason, want, err)
		}
	}
	if len(f.jobs.jobs) > 0 || len(f.provider.calls) > 0 {
		t.Errorf("jobs %+v, calls %v", f.jobs.jobs, f.provider.calls)
	}
}

// A job waits for a slot while it runs. A new job would lose its turn.
func TestARunningJobIsTakenOverOnlyAfterTakeoverAfter(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	if _, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: "uid", PodIPs: []string{"10.0.0.1"}, Set: "web"}, "server"); err != nil {
		t.Fatal(err)
	}
	f.jobs.clock.Step(10 * time.Minute)
	run := func(began time.Time) {
		if _, err := f.Store.Writer().ExecContext(t.Context(), "INSERT OR REPLACE INTO river_job (id, kind, args, max_attempts, state, attempted_at) VALUES (1, 'grant', '{}', 25, 'running', ?)",
			began.Format("2006-01-02 15:04:05.000")); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		runs time.Duration
		want int
	}{{30 * time.Second, 0}, {61 * time.Second, 1}} {
		run(f.Clock.Now().Add(-tc.runs))
		if n, err := f.Recover(t.Context(), time.Minute); n != tc.want || err != nil {
			t.Errorf("a job that runs for %s: %d recovered, want %d (%v)", tc.runs, n, tc.want, err)
		}
	}
	// The new job keeps the turn of the grant, and there is no other job.
	if n := len(f.jobs.jobs); n != 2 || !f.jobs.jobs[1].due.Equal(f.jobs.jobs[0].due) {
		t.Errorf("jobs: %+v", f.jobs.jobs)
	}
}
