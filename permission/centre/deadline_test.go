package centre

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// The centre was away when the pod went: it hears of it later, and has the leak
// in its books until that is healed.
func TestAPodThatWasLetGoIsALeakUntilItIsTakenBack(t *testing.T) {
	for name, before := range map[string]func(w *world, id string){
		"nothing was taken back yet": func(*world, string) {},
		"it is being taken back":     func(w *world, id string) { w.must(serverToken, "POST", "/v1/applications/"+id+"/revoke", nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, address string) {
				w := start(t, address)
				w.register(func(p *api.Provider) { p.Retry = api.Retry{MaxCalls: 20, BackoffSeconds: 0.2} }, "web", "db")
				a := w.until(w.ask(pod(1, "web")).ID, api.Granted)
				w.double.SetFaults(double.Faults{Status: http.StatusBadGateway})
				before(w, a.ID)
				letGo := api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", LetGo: true}
				var list api.ApplicationList
				w.must(serverToken, "POST", "/v1/applications/revoke", letGo, &list)
				if len(list.Items) != 1 || list.Items[0].State != api.Leaked || list.Items[0].Permissions[0].Reason != "RevocationDeadlineExceeded" {
					t.Errorf("told: %+v", list.Items)
				}
				text := w.metrics()
				for _, line := range []string{`permissioncentre_leaked_grants{provider="double"} 1`, `permissioncentre_applications{state="Leaked"} 1`,
					`permissioncentre_grant_states_total{provider="double",reason="RevocationDeadlineExceeded",state="Leaked"} 1`} {
					if !strings.Contains(text, line) {
						t.Errorf("not counted: %s", line)
					}
				}
				w.must(serverToken, "POST", "/v1/applications/revoke", letGo, nil) // twice is once
				w.double.SetFaults(double.Faults{})
				w.until(a.ID, api.Revoked)
				if text := w.metrics(); strings.Contains(text, "permissioncentre_leaked_grants{") {
					t.Error("a leak is left")
				}
				if held := w.double.Stats().Held; len(held) != 0 {
					t.Errorf("still held: %+v", held)
				}
				var h api.History
				w.must(serverToken, "GET", "/v1/applications/"+a.ID+"/history", nil, &h)
				var states []api.State
				for _, e := range h.Items {
					if e.Permission == "db" && e.From != e.To {
						states = append(states, e.To)
					}
				}
				if diff := cmp.Diff([]api.State{api.Applying, api.Granted, api.Revoking, api.Leaked, api.Revoked}, states); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAPodThatWasLetGoAndHasNothingLeaksNothing(t *testing.T) {
	each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.register(nil, "web", "db")
		w.must(ownerToken, "PUT", "/v1/permissions/db", api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double",
			Parameters: map[string]string{"name": "db", "wrong": "true"}}, nil, "If-Match", `"1"`)
		a := w.until(w.ask(pod(1, "web")).ID, api.Denied)
		var list api.ApplicationList
		w.must(serverToken, "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001", LetGo: true}, &list)
		if len(list.Items) != 1 || list.Items[0].ID != a.ID || list.Items[0].State != api.Revoked {
			t.Errorf("told: %+v", list.Items)
		}
	})
}
