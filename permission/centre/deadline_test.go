package centre

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// The centre was unreachable when the pod was deleted. It is informed later and
// counts the leak until it is revoked.
func TestAnUnrevokedGrantOfADeletedPodIsLeakedUntilItIsRevoked(t *testing.T) {
	for name, before := range map[string]func(w *fixture, id string){
		"the revocation had not begun":  func(*fixture, string) {},
		"the revocation is in progress": func(w *fixture, id string) { w.mustDo(serverToken, "POST", "/v1/applications/"+id+"/revoke", nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, address string) {
				w := newFixture(t, address)
				w.register(func(p *api.Provider) { p.Retry = api.Retry{MaxCalls: 20, BackoffSeconds: 0.2} }, "web", "db")
				a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
				w.double.SetFaults(double.Faults{Status: http.StatusBadGateway})
				before(w, a.ID)
				request := api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", LetGo: true}
				var list api.ApplicationList
				w.mustDo(serverToken, "POST", "/v1/applications/revoke", request, &list)
				if len(list.Items) != 1 || list.Items[0].State != api.Leaked {
					t.Errorf("applications: %+v", list.Items)
				}
				text := w.scrapeMetrics()
				for _, line := range []string{`breakwater_permission_centre_leaked_grants{provider="double"} 1`, `breakwater_permission_centre_applications{state="Leaked"} 1`,
					`breakwater_permission_centre_grant_transitions_total{provider="double",reason="RevocationDeadlineExceeded",state="Leaked"} 1`} {
					if !strings.Contains(text, line) {
						t.Errorf("metric is missing: %s", line)
					}
				}
				w.mustDo(serverToken, "POST", "/v1/applications/revoke", request, nil) // idempotent
				w.double.SetFaults(double.Faults{})
				w.waitForState(a.ID, api.Revoked)
				if text := w.scrapeMetrics(); strings.Contains(text, "breakwater_permission_centre_leaked_grants{") {
					t.Error("the leak is still counted")
				}
				if grants := w.double.Stats().Current; len(grants) != 0 {
					t.Errorf("the provider still has grants: %+v", grants)
				}
				var h api.History
				w.mustDo(serverToken, "GET", "/v1/applications/"+a.ID+"/history", nil, &h)
				var states []api.State
				for _, e := range h.Items {
					if e.Permission != "db" || e.From == e.To {
						continue
					}
					states = append(states, e.To)
					// The reason is checked here and not in the answer above: a revoke call that is in
					// progress may end before that answer.
					if e.To == api.Leaked && e.Reason != "RevocationDeadlineExceeded" {
						t.Errorf("leaked for %q: %s", e.Reason, e.Message)
					}
				}
				if diff := cmp.Diff([]api.State{api.Applying, api.Granted, api.Revoking, api.Leaked, api.Revoked}, states); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestADeletedPodWithoutGrantsLeaksNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		w.mustDo(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double",
			Parameters: map[string]string{"name": "db", "wrong": "true"}}, nil, "If-Match", `"1"`)
		a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Denied)
		var list api.ApplicationList
		w.mustDo(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", LetGo: true}, &list)
		if len(list.Items) != 1 || list.Items[0].ID != a.ID || list.Items[0].State != api.Revoked {
			t.Errorf("applications: %+v", list.Items)
		}
	})
}
