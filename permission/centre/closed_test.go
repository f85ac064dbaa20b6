package centre

import (
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// TestWhoIsNotNamedRegistersAndRequestsNothing is an attack of docs/security.md: a pod
// projects a token for the centre, registers a permission and a set, and requests it.
func TestWhoIsNotNamedRegistersAndRequestsNothing(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(nil, "web", "db")
	mine := api.Meta{Name: "mine", Owner: "system:serviceaccounts"}
	named := map[string]string{"name": "mine"}
	for name, tc := range map[string]struct {
		token, path string
		body        any
		status      int
		field, fix  string
	}{
		"a pod registers a permission": {podToken, "/v1/permissions", api.Permission{Meta: mine, Provider: "double", Parameters: named}, 403, "", "registrants"},
		"a pod registers a set":        {podToken, "/v1/permissionsets", api.PermissionSet{Meta: mine, Permissions: []string{"db"}}, 403, "", "registrants"},
		"an owner that the provider does not list": {ownerToken, "/v1/permissions",
			api.Permission{Meta: api.Meta{Name: "mine", Owner: "olga"}, Provider: "double", Parameters: named}, 400, "provider", "owners"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, problem := w.do(tc.token, "POST", tc.path, tc.body, nil); status != tc.status || problem.Field != tc.field || !strings.Contains(problem.Message, tc.fix) {
				t.Errorf("%d %+v, want %d, field %q and %q", status, problem, tc.status, tc.field, tc.fix)
			}
		})
	}
	t.Run("a provider without owners accepts no permission", func(t *testing.T) {
		p := double.Registration("closed", w.providerURL, "platform")
		p.Owners = nil
		w.mustDo(adminToken, "POST", "/v1/providers", p, nil)
		body := api.Permission{Meta: api.Meta{Name: "mine", Owner: "team-a"}, Provider: "closed", Parameters: named}
		if status, problem := w.do(ownerToken, "POST", "/v1/permissions", body, nil); status != 400 || problem.Field != "provider" {
			t.Errorf("%d %+v", status, problem)
		}
	})
	t.Run("no pod may request a set without pods", func(t *testing.T) {
		w.mustDo(ownerToken, "POST", "/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "closed", Owner: "team-a"}, Permissions: []string{"db"}}, nil)
		if status, problem := w.do(serverToken, "POST", "/v1/applications", podRequest(1, "closed"), nil); status != 403 || problem.Field != "set" {
			t.Errorf("%d %+v", status, problem)
		}
	})
	t.Run("a pattern without a namespace is rejected", func(t *testing.T) {
		set := api.PermissionSet{Meta: api.Meta{Name: "robots", Owner: "team-a"}, Permissions: []string{"db"}, Pods: []api.PodPattern{{ServiceAccount: "robot"}}}
		if status, problem := w.do(ownerToken, "POST", "/v1/permissionsets", set, nil); status != 400 || problem.Field != "pods[0].namespace" {
			t.Errorf("%d %+v", status, problem)
		}
	})
}

func TestAnOwnerRegistersOnlyItsParameters(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(func(p *api.Provider) {
		p.Owners = []string{"team-a", "team-b"}
		p.OwnerParameters = map[string]map[string][]string{"team-a": {"name": {"a-*", "shared"}}}
	}, "web", "a-db")
	for name, tc := range map[string]struct {
		token, owner string
		parameters   map[string]string
		status       int
	}{
		"own":                               {ownerToken, "team-a", map[string]string{"name": "a-cache"}, 201},
		"second pattern":                    {ownerToken, "team-a", map[string]string{"name": "shared"}, 201},
		"of another team":                   {ownerToken, "team-a", map[string]string{"name": "b-db"}, 400},
		"missing":                           {ownerToken, "team-a", nil, 400},
		"an owner without patterns has all": {bystandToken, "team-b", map[string]string{"name": "b-db"}, 201},
	} {
		t.Run(name, func(t *testing.T) {
			body := api.Permission{Meta: api.Meta{Name: strings.ReplaceAll(name, " ", "-"), Owner: tc.owner}, Provider: "double", Parameters: tc.parameters}
			if status, problem := w.do(tc.token, "POST", "/v1/permissions", body, nil); status != tc.status || status == 400 && problem.Field != "parameters.name" {
				t.Errorf("%d %+v, want %d", status, problem, tc.status)
			}
		})
	}
	for name, tc := range map[string]struct {
		parameters map[string]map[string][]string
		field      string
	}{
		"an owner that is not listed": {map[string]map[string][]string{"team-c": {"name": {"c"}}}, "ownerParameters.team-c"},
		"an invalid pattern":          {map[string]map[string][]string{"team-a": {"name": {"["}}}, "ownerParameters.team-a.name[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := double.Registration("other", w.providerURL, "platform")
			p.Owners, p.OwnerParameters = []string{"team-a"}, tc.parameters
			if status, problem := w.do(adminToken, "POST", "/v1/providers", p, nil); status != 400 || problem.Field != tc.field {
				t.Errorf("%d %+v, want field %s", status, problem, tc.field)
			}
		})
	}
}
