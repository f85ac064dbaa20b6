package centre

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// The init-action-server may have sent a request before the pod ended. No revocation
// follows it.
func TestALateRequestForAPodThatHasEndedGrantsNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		granted := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		for n := range 2 { // pod 0 never requested
			w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: podRequest(n, "web").PodUID}, nil)
		}
		w.waitForState(granted.ID, api.Revoked)
		for n := range 2 {
			if status, problem := w.do(serverToken, "POST", "/v1/applications", podRequest(n, "web"), nil); status != http.StatusConflict {
				t.Errorf("pod %d: %d %+v", n, status, problem)
			}
		}
		// The same UID in another cluster is another pod, and a pod that gets a new sandbox
		// has not ended.
		w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: podRequest(2, "web").PodUID, KeepIPs: []string{"10.9.9.9"}}, nil)
		w.waitForState(w.request(podRequest(2, "web")).ID, api.Granted)
		if grants := w.double.Stats().Current; len(grants) != 1 {
			t.Errorf("grants at the provider: %+v", grants)
		}
	})
}

// The controller reports a leak if the centre has no applications of a pod that ends.
func TestTheApplicationsOfAnExistingPodAreKeptAfterTheRetention(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		for n := range 2 {
			a := w.waitForState(w.request(podRequest(n, "web")).ID, api.Granted)
			w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
			w.waitForState(a.ID, api.Revoked)
		}
		if _, err := w.centre.store.Writer().ExecContext(t.Context(), fmt.Sprintf("UPDATE applications SET updated = updated - %d", (2*w.centre.config.Retention).Microseconds())); err != nil {
			t.Fatal(err)
		}
		w.mustDo(serverToken, "POST", "/v1/clusters/c1/pods/reconcile", api.PodReport{ClusterUID: "c1-uid", Observed: time.Now(),
			Pods: []api.LivePod{{UID: podRequest(1, "web").PodUID, IPs: podRequest(1, "web").PodIPs}}}, nil)
		applications := func(n int) (states []api.State) {
			var result api.RevokeResult
			w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: podRequest(n, "web").PodUID}, &result)
			for _, a := range result.Items {
				states = append(states, a.State)
			}
			return states
		}
		if err := w.centre.prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := applications(0); len(got) != 0 {
			t.Errorf("a pod that no report lists: applications %v after the retention, want none", got)
		}
		if got := applications(1); !slices.Equal(got, []api.State{api.Revoked}) {
			t.Errorf("a pod that a report lists: applications %v after the retention, want one that is Revoked", got)
		}
		// Reports of the cluster may end.
		if err := w.centre.store.Prune(t.Context(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := applications(1); len(got) != 0 {
			t.Errorf("applications %v after the retention since the last report, want none", got)
		}
	})
}

func TestARequestAtTheEndOfItsPodIsRejectedOrRevoked(t *testing.T) {
	const pods = 60
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.skipValidation = true
		w.register(nil, "web", "db")
		var all sync.WaitGroup
		for n := range pods {
			r := podRequest(n, "web")
			all.Go(func() {
				if status, problem := w.do(serverToken, "POST", "/v1/applications", r, nil); status != http.StatusCreated && status != http.StatusConflict {
					t.Errorf("request: %d %+v", status, problem)
				}
			})
			all.Go(func() {
				if status, problem := w.do(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: r.PodUID}, nil); status >= 300 {
					t.Errorf("revoke: %d %+v", status, problem)
				}
			})
		}
		all.Wait()
		apps, err := w.centre.store.View(t.Context()).Applications(store.Filter{}, store.Page{Limit: pods})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range apps {
			if !a.RevokeRequested {
				t.Errorf("%s of a pod that has ended", fmt.Sprint(a.State))
			}
		}
		t.Logf("%d of %d requests came first", len(apps), pods)
	})
}
