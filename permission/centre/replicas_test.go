package centre

import (
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestTwoReplicasShareTheQueueAndTheLimit(t *testing.T) {
	const pods, limit = 300 / slower, 100 / slower
	address := database.Postgres(t)
	w := start(t, address)
	one, stopOne := w.centre, w.stop
	w.replica(setting(t, address))
	two := w.centre
	w.double.SetFaults(double.Faults{Limit: limit + 1, Delay: 20})
	w.register(func(p *api.Provider) { p.RateLimit = api.RateLimit{PerSecond: limit, Burst: 1} }, "web", "db")
	for n := range pods {
		w.ask(pod(n, "web"))
	}
	granted := func() int {
		states, err := two.store.View(t.Context()).CountStates()
		if err != nil {
			return 0
		}
		return states[api.Granted]
	}
	// One is stopped while both are at work; the other does the rest.
	eventually(t, 3*time.Minute, "half are granted", func() bool { return granted() >= pods/2 })
	stopOne()
	eventually(t, 3*time.Minute, "all are granted", func() bool { return granted() == pods })
	if a, b := calls(t, one), calls(t, two); a < pods/10 || b < pods/10 || a+b != pods {
		t.Errorf("the replicas made %d and %d calls", a, b)
	}
	if b := w.double.Stats(); b.Peak > limit+1 || b.Rejected != 0 || b.Duplicates != 0 || b.Repeats != 0 {
		t.Errorf("books: %d in the busiest second, %d refused, %d doubled, %d repeated", b.Peak, b.Rejected, b.Duplicates, b.Repeats)
	}
}

// A long poll at one replica is answered for what another did.
func TestAReplicaTellsOfWhatAnotherDid(t *testing.T) {
	address := database.Postgres(t)
	w := start(t, address)
	w.register(nil, "web", "db")
	first := *w
	w.replica(setting(t, address))
	a := w.until(w.ask(pod(1, "web")).ID, api.Granted)
	answered := make(chan api.Application)
	go func() {
		var now api.Application
		w.must(serverToken, "GET", "/v1/applications/"+a.ID+"?wait=30s&version="+itoa(a.Version), nil, &now)
		answered <- now
	}()
	eventually(t, 10*time.Second, "somebody waits", w.centre.watchers.Active)
	began := time.Now()
	first.must(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
	if now := <-answered; now.State != api.Revoking && now.State != api.Revoked {
		t.Errorf("state %s", now.State)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// calls counts a replica's calls to providers.
func calls(t *testing.T, c *Centre) int {
	t.Helper()
	families, err := c.metrics.registry.Gather()
	if err != nil {
		t.Log(err) // A replica that is stopped counts no applications.
	}
	n := 0
	for _, f := range families {
		if f.GetName() == "permissioncentre_provider_call_seconds" {
			for _, m := range f.GetMetric() {
				n += int(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return n
}
