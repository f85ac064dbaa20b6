package centre

import (
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
	double "github.com/breakwater-dev/breakwater/test/provider"
	"github.com/breakwater-dev/breakwater/test/race"
)

func TestTwoReplicasShareTheQueueAndTheLimit(t *testing.T) {
	const pods, limit = 300 / race.Slowdown, 100 / race.Slowdown
	address := database.Postgres(t)
	w := newFixture(t, address)
	one, stopOne := w.centre, w.stop
	w.startReplica(testConfig(t, address))
	two := w.centre
	w.double.SetFaults(double.Faults{Delay: 20})
	w.register(func(p *api.Provider) { p.RateLimit = api.RateLimit{PerSecond: limit, Burst: 1} }, "web", "db")
	for n := range pods {
		w.request(podRequest(n, "web"))
	}
	granted := func() int {
		states, err := two.store.View(t.Context()).CountStates()
		if err != nil {
			return 0
		}
		return states[api.Granted]
	}
	// One replica is stopped while both work; the other one finishes. The share of each
	// replica varies: the replica that receives a request is the first to see its steps,
	// and the first replica that asks for a slot gets it.
	eventually(t, 3*time.Minute, "most applications are granted", func() bool { return granted() >= pods*3/4 })
	stopOne()
	eventually(t, 3*time.Minute, "all applications are granted", func() bool { return granted() == pods })
	if a, b := callCount(t, one), callCount(t, two); a < pods/50 || b < pods/50 || a+b != pods {
		t.Errorf("the replicas made %d and %d calls", a, b)
	}
	if b, peak := w.double.Stats(), w.calls.peak(); peak > limit+1 || b.Duplicates != 0 || b.Repeats != 0 {
		t.Errorf("stats: %d in the peak second, %d duplicates, %d repeats", peak, b.Duplicates, b.Repeats)
	}
}

func TestALongPollReturnsChangesOfAnotherReplica(t *testing.T) {
	address := database.Postgres(t)
	w := newFixture(t, address)
	w.register(nil, "web", "db")
	first := *w
	w.startReplica(testConfig(t, address))
	a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
	answered := make(chan api.Application)
	go func() {
		var now api.Application
		w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID+"?wait=30s&version="+itoa(a.Version), nil, &now)
		answered <- now
	}()
	eventually(t, 10*time.Second, "a long poll waits", func() bool { return w.centre.notifier.Count() > 0 })
	began := time.Now()
	first.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
	if now := <-answered; now.State != api.Revoking && now.State != api.Revoked {
		t.Errorf("state %s, want Revoking or Revoked", now.State)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the long poll took %s", took)
	}
}

// callCount returns the number of provider calls of a replica.
func callCount(t *testing.T, c *Centre) int {
	t.Helper()
	families, err := c.metrics.registry.Gather()
	if err != nil {
		t.Log(err) // A stopped replica cannot count applications.
	}
	n := 0
	for _, f := range families {
		if f.GetName() == "breakwater_permission_centre_provider_call_duration_seconds" {
			for _, m := range f.GetMetric() {
				n += int(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return n
}
