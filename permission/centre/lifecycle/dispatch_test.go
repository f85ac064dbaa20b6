package lifecycle_test

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
)

// startWithSlowRate starts a process that has granted one application. The next slot is after 100 s.
func startWithSlowRate(t *testing.T, address string) *backlog {
	t.Helper()
	w := &backlog{t: t, address: address, provider: loggedProvider{"double": {byKey: map[string]int{}}}}
	w.start()
	registerBacklog(t, w.engine.Store, 10, 10)
	w.setRate("double", 0.01)
	w.request(0, "web")
	w.wait(time.Minute, map[api.State]int{api.Granted: 1})
	return w
}

func TestAStepThatCannotBeReadDoesNotDelayOthers(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := startWithSlowRate(t, address)
		defer func() { w.stop() }()
		w.request(1, "web")
		w.request(2, "web")
		if _, err := w.engine.Store.Writer().Exec("UPDATE grants SET parameters = '{' WHERE application = (SELECT id FROM applications WHERE pod = 'web-1')"); err != nil {
			t.Fatal(err)
		}
		w.wait(3*time.Minute, map[api.State]int{api.Granted: 2, api.Requested: 1})
		if _, err := w.engine.Store.Writer().Exec("UPDATE grants SET parameters = '{}'"); err != nil {
			t.Fatal(err)
		}
		w.wait(6*time.Minute, map[api.State]int{api.Granted: 3})
	})
}

// A process waits for a slot that is far away, and stops at once.
func TestAProcessThatWaitsForTheRateLimitStopsAtOnce(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := startWithSlowRate(t, address)
		w.request(1, "web")
		time.Sleep(time.Second)
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the process stopped after %s", took)
		}
		w.start()
		w.wait(3*time.Minute, map[api.State]int{api.Granted: 2})
		w.stop()
	})
}

func TestARaisedRateLimitAppliesWithinSeconds(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := startWithSlowRate(t, address)
		defer func() { w.stop() }()
		w.request(1, "web")
		time.Sleep(time.Second) // of virtual time
		w.setRate("double", 10)
		w.wait(15*time.Second, map[api.State]int{api.Granted: 2})
	})
}

// SQLite has one writer, for which requests of pods wait.
func TestAnIdleCentreDoesNotUseTheWriter(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		w := &backlog{t: t, address: address, provider: loggedProvider{"double": {byKey: map[string]int{}}}}
		w.start()
		defer func() { w.stop() }()
		registerBacklog(t, w.engine.Store, 10, 10)
		w.request(0, "web")
		w.wait(time.Minute, map[api.State]int{api.Granted: 1})
		synctest.Wait()
		writer, err := w.engine.Store.Writer().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := w.engine.Store.Writer().Stats().WaitCount
		time.Sleep(time.Hour) // of virtual time, in which the centre polls
		synctest.Wait()
		if n := w.engine.Store.Writer().Stats().WaitCount - before; n > 0 {
			t.Errorf("the writer was needed %d times in an hour without requests", n)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStepsAreStartedAheadUnlessTheProviderIsSlow(t *testing.T) {
	for name, tc := range map[string]struct {
		latency              time.Duration
		calls, started, want int
	}{
		"the latency is not known":                  {0, 0, 0, 32},
		"a transaction starts what can be called":   {time.Millisecond, 0, 0, 128},
		"a provider with the latency of two slots":  {40 * time.Millisecond, 0, 0, 32},
		"a fast provider":                           {time.Millisecond, 24, 110, 18},
		"all steps wait for their slots":            {time.Millisecond, 0, 128, 0},
		"two calls in turn fit before a new slot":   {15 * time.Millisecond, 10, 70, 26},
		"few steps wait for a larger transaction":   {15 * time.Millisecond, 10, 90, 0},
		"a slow provider":                           {time.Second, 20, 31, 1},
		"most calls are in progress":                {time.Millisecond, 25, 25, 7},
		"all calls are in progress":                 {time.Millisecond, 32, 32, 0},
		"the provider became slow: many steps wait": {time.Millisecond, 32, 128, 0},
	} {
		if got := lifecycle.Startable(32, tc.latency, tc.calls, tc.started); got != tc.want {
			t.Errorf("%s: %d steps may be started, want %d", name, got, tc.want)
		}
	}
}

// The provider takes 300 ms for a call.
func TestTheCallsInProgressAreBounded(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		calls := &callLog{byKey: map[string]int{}}
		w := &backlog{t: t, address: address, provider: loggedProvider{"double": calls}}
		w.start()
		defer func() { w.stop() }()
		registerBacklog(t, w.engine.Store, 1000, 10)
		const pods = 400
		for n := range pods {
			w.request(n, "web")
		}
		w.wait(time.Minute, map[api.State]int{api.Granted: pods})
		calls.mu.Lock()
		defer calls.mu.Unlock()
		slices.SortFunc(calls.calls, time.Time.Compare)
		for i := w.engine.ConcurrentCallsPerProvider; i < len(calls.calls); i++ {
			if earlier := calls.calls[i-w.engine.ConcurrentCallsPerProvider]; calls.calls[i].Sub(earlier) < 300*time.Millisecond {
				t.Fatalf("call %d began %s after call %d, which took 300 ms", i, calls.calls[i].Sub(earlier), i-w.engine.ConcurrentCallsPerProvider)
			}
		}
		if took := calls.calls[len(calls.calls)-1].Sub(calls.calls[0]); len(calls.calls) != pods || took > 2*pods/32*300*time.Millisecond {
			t.Errorf("%d calls within %s", len(calls.calls), took)
		}
	})
}
