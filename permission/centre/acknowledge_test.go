package centre

import (
	"net/http"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// The grants of a provider that cannot revoke are removed by people.
func TestAnAcknowledgedLeakEndsAndIsPruned(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(func(p *api.Provider) { p.CanRevoke = false }, "web", "db", "cache")
		var ids []string
		for n := range 3 {
			id := w.waitForState(w.request(podRequest(n, "web")).ID, api.Granted).ID
			ids = append(ids, id)
			w.mustDo(serverToken, "POST", "/v1/applications/"+id+"/revoke", nil, nil)
			w.waitForState(id, api.Leaked)
		}
		for _, token := range []string{serverToken, bystandToken} {
			if status, _ := w.do(token, "POST", "/v1/applications/"+ids[0]+"/acknowledge", nil, nil); status != http.StatusForbidden {
				t.Errorf("acknowledged by another user: status %d", status)
			}
		}
		if status, _ := w.do(ownerToken, "POST", "/v1/providers/double/acknowledge", nil, nil); status != http.StatusForbidden {
			t.Errorf("all leaks acknowledged by an owner: status %d", status)
		}
		var one api.Application
		w.mustDo(ownerToken, "POST", "/v1/applications/"+ids[0]+"/acknowledge", nil, &one)
		if p := one.Permissions[0]; one.State != api.Revoked || p.Reason != "Acknowledged" || p.Message != "olga stated that the grant no longer exists" {
			t.Errorf("%+v", one)
		}
		var rest api.AcknowledgeResult
		w.mustDo(adminToken, "POST", "/v1/providers/double/acknowledge", nil, &rest)
		if rest.Acknowledged != 4 {
			t.Errorf("acknowledged %d grants of 2 applications, want 4", rest.Acknowledged)
		}
		var h api.History
		w.mustDo(serverToken, "GET", "/v1/applications/"+ids[1]+"/history", nil, &h)
		if last := h.Items[len(h.Items)-1]; last.To != api.Revoked || last.Who != "alice" {
			t.Errorf("history: %+v", last)
		}
		if err := w.centre.store.Prune(t.Context(), time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if status, _ := w.do(adminToken, "GET", "/v1/applications/"+id, nil, nil); status != http.StatusNotFound {
				t.Errorf("an acknowledged application is not pruned: status %d", status)
			}
		}
		if status, _ := w.do(adminToken, "POST", "/v1/providers/nothing/acknowledge", nil, nil); status != http.StatusNotFound {
			t.Errorf("unknown provider: status %d", status)
		}
	})
}

func TestAListShowsTheGrantsAndLeaksOfEachApplication(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(func(p *api.Provider) { p.CanRevoke = false }, "web", "db", "cache")
		leaked := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
		w.mustDo(serverToken, "POST", "/v1/applications/"+leaked.ID+"/revoke", nil, nil)
		next := podRequest(2, "web")
		next.PodIPs = podRequest(1, "web").PodIPs
		w.waitForState(w.request(next).ID, api.Granted)
		other := w.waitForState(w.request(podRequest(3, "web")).ID, api.Granted)
		var list api.ApplicationList
		w.mustDo(serverToken, "GET", "/v1/applications", nil, &list)
		if len(list.Items) != 3 {
			t.Fatalf("%d applications", len(list.Items))
		}
		for _, a := range list.Items {
			var one api.Application
			w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID, nil, &one)
			if len(a.Permissions) != 2 || a.Permissions[0].Permission != "db" || len(a.Leaked) != len(one.Leaked) {
				t.Errorf("in the list: %+v, alone: %+v", a, one)
			}
			want := map[string]int{leaked.ID: 0, other.ID: 0}
			if n, ok := want[a.ID]; len(a.Leaked) != n && ok || len(a.Leaked) != 2 && !ok {
				t.Errorf("leaks of pod %s: %+v", a.Pod, a.Leaked)
			}
		}
	})
}
