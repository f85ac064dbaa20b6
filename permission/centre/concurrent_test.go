package centre

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/database"
)

// atOnce calls do n times at the same time.
func atOnce(n int, do func(n int)) {
	begin := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-begin
			do(i)
		})
	}
	close(begin)
	all.Wait()
}

// Concurrent requests share a transaction.
func TestARejectedRequestDoesNotFailTheOthersOfItsTransaction(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		const pods = 60
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		w.mustDo(ownerToken, "POST", "/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "private", Owner: "team-a"}, Permissions: []string{"db"},
			Pods: []api.PodPattern{{Namespace: "other"}}}, nil)
		for n := 3; n < pods; n += 4 {
			w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: podRequest(n, "web").PodUID}, nil)
		}
		want := []int{http.StatusCreated, http.StatusNotFound, http.StatusForbidden, http.StatusConflict}
		atOnce(pods, func(n int) {
			r := podRequest(n, []string{"web", "unknown", "private", "web"}[n%4])
			if status, problem := w.do(serverToken, "POST", "/v1/applications", r, nil); status != want[n%4] {
				t.Errorf("pod %d: %d %+v, want %d", n, status, problem, want[n%4])
			}
		})
		eventually(t, time.Minute, "all others are granted", func() bool {
			states, err := w.centre.store.View(t.Context()).CountStates()
			return err == nil && len(states) == 1 && states[api.Granted] == pods/4
		})
	})
}

func TestConcurrentRequestsOfAPodCreateOneApplication(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		const requests = 30
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		var mu sync.Mutex
		statuses := map[int]int{}
		atOnce(requests, func(int) {
			var status int
			eventually(t, time.Minute, "the request is answered", func() bool {
				status, _ = w.do(serverToken, "POST", "/v1/applications", podRequest(1, "web"), nil)
				return status != http.StatusServiceUnavailable // another request held the lock for too long
			})
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
		if statuses[http.StatusCreated] != 1 || statuses[http.StatusOK] != requests-1 {
			t.Errorf("statuses %v", statuses)
		}
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		var history api.History
		w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID+"/history", nil, &history)
		if len(history.Items) != 5 || w.double.Stats().Granted != 1 {
			t.Errorf("history %+v, stats %+v", history.Items, w.double.Stats())
		}
	})
}

// The grants of one application cannot be read, for example because of a broken disk.
func TestAnApplicationThatCannotBeReadDoesNotFailTheOthersOfItsTransaction(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		const pods = 40
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		ids := make([]string, pods)
		for n := range pods {
			ids[n] = w.request(podRequest(n, "web")).ID
		}
		for _, id := range ids {
			w.waitForState(id, api.Granted)
		}
		if _, err := w.centre.store.Writer().ExecContext(t.Context(), fmt.Sprintf("UPDATE grants SET parameters = '{' WHERE application = '%s'", ids[7])); err != nil {
			t.Fatal(err)
		}
		atOnce(pods, func(n int) {
			_, _, began, err := w.centre.engine.Revoke(t.Context(), ids[n], "server")
			if broken := n == 7; (err != nil) != broken || began == broken {
				t.Errorf("application %d: began %t, %v", n, began, err)
			}
		})
		eventually(t, time.Minute, "all others are revoked", func() bool {
			states, err := w.centre.store.View(t.Context()).CountStates()
			return err == nil && states[api.Revoked] == pods-1
		})
	})
}

// The network gives an address to another pod at once, and the requests of both arrive together.
func TestPodsThatRequestForAnAddressAtTheSameTimeDoNotBothHaveIt(t *testing.T) {
	for name, replicas := range map[string]func(t *testing.T) []*Centre{
		"sqlite": func(t *testing.T) []*Centre {
			w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
			w.register(nil, "web", "db")
			return []*Centre{w.centre}
		},
		"two replicas with postgres": func(t *testing.T) []*Centre {
			address := database.Postgres(t)
			w := newFixture(t, address)
			w.register(nil, "web", "db")
			one := w.centre
			w.startReplica(testConfig(t, address))
			return []*Centre{one, w.centre}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const pods, addresses = 4, 15
			all := replicas(t)
			atOnce(pods*addresses, func(n int) {
				r := podRequest(n, "web")
				r.PodIPs = []string{fmt.Sprintf("10.1.0.%d", n/pods)}
				if _, _, _, err := all[n%len(all)].engine.Request(t.Context(), r, "server"); err != nil {
					t.Errorf("pod %d: %v", n, err)
				}
			})
			for n := range addresses {
				ip := fmt.Sprintf("10.1.0.%d", n)
				active, err := all[0].store.View(t.Context()).Applications(store.Filter{IP: ip, States: []api.State{api.Requested, api.Applying, api.Granted}}, store.Page{Limit: 10})
				if err != nil || len(active) != 1 {
					t.Errorf("%d pods have address %s (%v)", len(active), ip, err)
				}
			}
		})
	}
}

// The session is that of a replica that does not continue, for example.
func TestLocksOfAnotherSessionStopOnlyTheirPods(t *testing.T) {
	const pods, locked = 100, 2
	w := newFixture(t, database.Postgres(t))
	w.register(nil, "web", "db")
	ids := make([]string, pods)
	each := func(do func(n int) error) {
		t.Helper()
		atOnce(pods, func(n int) {
			if err := do(n); n >= locked && err != nil {
				t.Errorf("pod %d, which is not locked: %v", n, err)
			} else if n < locked && !store.LockTimeout(err) {
				t.Errorf("pod %d, which is locked: %v", n, err)
			}
		})
	}
	request := func(n int) error {
		a, _, _, err := w.centre.engine.Request(t.Context(), podRequest(n, "web"), "server")
		ids[n] = a.ID
		return err
	}
	revoke := func(n int) error {
		_, _, _, err := w.centre.engine.Revoke(t.Context(), ids[n], "server")
		return err
	}
	lock := func(statement string, of func(n int) string) (unlock func() error) {
		t.Helper()
		session, err := w.centre.store.Writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Rollback() })
		if _, err := session.ExecContext(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
			t.Fatal(err)
		}
		for n := range locked {
			if _, err := session.ExecContext(t.Context(), statement, of(n)); err != nil {
				t.Fatal(err)
			}
		}
		return session.Rollback
	}
	unlock := lock("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", func(n int) string { return store.PodName("c1", podRequest(n, "web").PodUID) })
	each(request)
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	for n := range locked {
		if err := request(n); err != nil {
			t.Fatal(err)
		}
	}
	unlock = lock("SELECT 1 FROM applications WHERE id = $1 FOR UPDATE", func(n int) string { return ids[n] })
	each(revoke)
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
}
