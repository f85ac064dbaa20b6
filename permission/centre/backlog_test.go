package centre

import (
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// The centre is stopped in the middle of a backlog, in which each step waits for its slot for
// longer than its call takes.
func TestEachRevocationOfABacklogIsDoneOnceAcrossARestart(t *testing.T) {
	const pods, limit = 200, 20
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.skipValidation = true
		w.register(nil, "web", "db")
		for n := range pods {
			w.request(podRequest(n, "web"))
		}
		count := func(state api.State) int {
			states, err := w.centre.store.View(t.Context()).CountStates()
			if err != nil {
				t.Log(err)
			}
			return states[state]
		}
		eventually(t, time.Minute, "all applications are granted", func() bool { return count(api.Granted) == pods })
		var p api.Provider
		w.mustDo(adminToken, "GET", "/v1/providers/double", nil, &p)
		p.RateLimit = api.RateLimit{PerSecond: limit, Burst: 1}
		w.mustDo(adminToken, "PUT", "/v1/providers/double", p, nil, "If-Match", `"1"`)

		began := time.Now()
		for n := range pods {
			w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: podRequest(n, "web").PodUID}, nil)
		}
		eventually(t, time.Minute, "half of the applications are revoked", func() bool { return count(api.Revoked) >= pods/2 })
		w.stop()
		w.startReplica(testConfig(t, address))
		eventually(t, time.Minute, "all applications are revoked", func() bool { return count(api.Revoked) == pods })
		b := w.double.Stats()
		t.Logf("%d revocations took %s at %d per second", pods, time.Since(began).Round(time.Second), limit)
		if b.Calls != 2*pods || b.Revoked != pods {
			t.Errorf("%d calls, %d revoked", b.Calls, b.Revoked)
		}
	})
}
