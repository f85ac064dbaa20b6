package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// The page behind the redirect, of a login for example, answers 200. That proves neither a grant nor a revocation.
func TestARedirectThatChangesTheMethodIsNeitherGrantedNorRevoked(t *testing.T) {
	cmdb := func(p *api.Provider) { p.Type, p.HTTP = api.ProviderCMDB, nil }
	poll := func(p *api.Provider) {
		p.HTTP.Grant.Pending, p.HTTP.Poll = "status == 202", &api.HTTPCall{Method: "GET", Path: "/grants"}
	}
	for name, tc := range map[string]struct {
		change   func(*api.Provider)
		op       Op
		statuses []int
		followed bool
	}{
		"grant":                  {nil, Grant, []int{301, 302, 303}, false},
		"grant of a CMDB":        {cmdb, Grant, []int{301, 302, 303}, false},
		"revocation":             {nil, Revoke, []int{301, 302, 303}, false},
		"revocation of a CMDB":   {cmdb, Revoke, []int{301, 302, 303}, false},
		"poll":                   {poll, Poll, []int{301, 302, 303, 307, 308}, true},
		"same method":            {nil, Grant, []int{307, 308}, true},
		"same method, to revoke": {cmdb, Revoke, []int{307, 308}, true},
	} {
		for _, status := range tc.statuses {
			t.Run(fmt.Sprintf("%s, %d", name, status), func(t *testing.T) {
				followed := false
				c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/elsewhere" {
						followed = true
						return
					}
					http.Redirect(w, r, "/elsewhere", status)
				}, tc.change)
				want := Result{Outcome: Failed, Reason: ReasonProviderError, Sent: true}
				if tc.followed {
					want.Outcome, want.Reason = Done, ReasonGranted
					if tc.op == Revoke {
						want.Reason = ReasonRevoked
					}
				}
				got := c.Call(t.Context(), Call{Op: tc.op, Key: "k", IPs: []string{"10.0.0.1"}})
				if got.Outcome != want.Outcome || got.Reason != want.Reason || got.Sent != want.Sent || followed != tc.followed {
					t.Errorf("%+v, followed %v", got, followed)
				}
				if !tc.followed && !strings.Contains(got.Message, "http."+string(tc.op)+".granted") {
					t.Errorf("the message has no way out: %s", got.Message)
				}
			})
		}
	}
}
