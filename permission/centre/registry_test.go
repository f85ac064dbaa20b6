package centre

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

func TestChangesOfRegisteredObjectsNeedTheCurrentVersion(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db")
		permission := func(value string) api.Permission {
			return api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: "double", Parameters: map[string]string{"name": value}}
		}
		if status, problem := w.do(ownerToken, "PUT", "/v1/permissions/db", permission("x"), nil); status != 428 || problem.Reason != "PreconditionRequired" {
			t.Errorf("without If-Match: %d %+v", status, problem)
		}
		var changed api.Permission
		w.mustDo(ownerToken, "PUT", "/v1/permissions/db", permission("x"), &changed, "If-Match", `"1"`)
		if changed.Version != 2 || changed.Name != "db" || !changed.Updated.After(changed.Created) {
			t.Errorf("changed permission: %+v", changed)
		}
		if status, _ := w.do(ownerToken, "PUT", "/v1/permissions/db", permission("y"), nil, "If-Match", `"1"`); status != 412 {
			t.Errorf("old version: status %d", status)
		}
		if status, problem := w.do(ownerToken, "POST", "/v1/permissions", api.Permission{Meta: api.Meta{Name: "db", Owner: "team-a"}, Provider: "double"}, nil); status != 409 {
			t.Errorf("existing name: %d %+v", status, problem)
		}
		if status, problem := w.do(ownerToken, "DELETE", "/v1/permissions/db", nil, nil, "If-Match", `"2"`); status != 409 || !strings.Contains(problem.Message, "1 permissionsets") {
			t.Errorf("delete of a permission in use: %d %+v", status, problem)
		}
		w.mustDo(ownerToken, "DELETE", "/v1/permissionsets/web", nil, nil, "If-Match", `"1"`)
		w.mustDo(ownerToken, "DELETE", "/v1/permissions/db", nil, nil, "If-Match", `"2"`)
		w.mustDo(adminToken, "DELETE", "/v1/providers/double", nil, nil, "If-Match", `"1"`)
		if status, _ := w.do(ownerToken, "GET", "/v1/permissions/db", nil, nil); status != 404 {
			t.Errorf("read of a deleted permission: status %d", status)
		}

		var audit api.List[api.AuditEntry]
		w.mustDo(adminToken, "GET", "/v1/audit?kind=permission&name=db", nil, &audit)
		var changes []string
		for _, e := range audit.Items {
			changes = append(changes, e.Who+" "+e.Verb)
		}
		if diff := cmp.Diff([]string{"olga delete", "olga update", "olga create"}, changes); diff != "" {
			t.Error(diff)
		}
		if !strings.Contains(audit.Items[1].Before, `"name":"db"`) || !strings.Contains(audit.Items[1].After, `"x"`) {
			t.Errorf("audit entry of the update: %+v", audit.Items[1])
		}
	})
}

// The webhook admits pods with hostNetwork by nodeScoped of their sets. The version of a set stays, so its
// owner can change it with the ETag that the owner has read.
func TestNodeScopedOfASetFollowsTheProvidersOfItsPermissions(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nil, "web", "db", "cache")
		nodes := double.Registration("nodes", w.providerURL, "platform")
		nodeScoped(&nodes)
		nodes.AllowHTTP = true
		w.mustDo(adminToken, "POST", "/v1/providers", nodes, nil)
		w.mustDo(ownerToken, "POST", "/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "other", Owner: "team-a"}, Permissions: []string{"cache"}}, nil)
		for _, step := range []struct {
			permission, provider, version string
			web, other                    bool
		}{
			{"db", "nodes", "1", false, false},
			{"cache", "nodes", "1", true, true},
			{"db", "double", "2", false, true},
		} {
			w.mustDo(ownerToken, "PUT", "/v1/permissions/"+step.permission, api.Permission{Meta: api.Meta{Owner: "team-a"}, Provider: step.provider,
				Parameters: map[string]string{"name": step.permission}}, nil, "If-Match", `"`+step.version+`"`)
			var list api.List[api.PermissionSet]
			w.mustDo(ownerToken, "GET", "/v1/permissionsets", nil, &list)
			listed := map[string]bool{}
			for _, s := range list.Items {
				listed[s.Name] = s.NodeScoped
			}
			for name, want := range map[string]bool{"web": step.web, "other": step.other} {
				var set api.PermissionSet
				w.mustDo(ownerToken, "GET", "/v1/permissionsets/"+name, nil, &set)
				if set.NodeScoped != want || listed[name] != want || set.Version != 1 {
					t.Errorf("after %s has provider %s: set %s has nodeScoped %t (in the list %t) and version %d, want %t and 1",
						step.permission, step.provider, name, set.NodeScoped, listed[name], set.Version, want)
				}
			}
		}
	})
}

// A revocation would be called for other addresses than the grant, or by another client.
func TestTypeAndNodeScopedOfAProviderAreImmutableWhileItHasGrants(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.register(nodeScoped, "web", "db")
		a := w.waitForState(w.request(onNode(1)).ID, api.Granted)
		w.mustDo(ownerToken, "DELETE", "/v1/permissionsets/web", nil, nil, "If-Match", `"1"`)
		w.mustDo(ownerToken, "DELETE", "/v1/permissions/db", nil, nil, "If-Match", `"1"`)
		var p api.Provider
		w.mustDo(adminToken, "GET", "/v1/providers/double", nil, &p)
		other := p
		other.NodeScoped = false
		if status, problem := w.do(adminToken, "PUT", "/v1/providers/double", other, nil, "If-Match", `"1"`); status != 409 || !strings.Contains(problem.Message, "to revoke 1 grants") {
			t.Errorf("with a grant: %d %+v, want 409 with the number of grants", status, problem)
		}
		p.RateLimit.PerSecond++
		w.mustDo(adminToken, "PUT", "/v1/providers/double", p, nil, "If-Match", `"1"`)
		w.mustDo(serverToken, "POST", "/v1/applications/"+a.ID+"/revoke", nil, nil)
		w.waitForState(a.ID, api.Revoked)
		if grants := w.double.Stats().Current; len(grants) != 0 {
			t.Errorf("the provider has %+v after the revocation", grants)
		}
		w.mustDo(adminToken, "PUT", "/v1/providers/double", other, nil, "If-Match", `"2"`)
	})
}

func TestListsCanBeSearchedAndPaged(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		names := []string{"a-100%", "a-1", "a_1", "b-1", "b-2"}
		for i := range names {
			names[i] = strings.NewReplacer("%", "x", "_", ".").Replace(names[i])
		}
		w.register(nil, "web", names...)
		var all []string
		for next, pages := "", 0; ; pages++ {
			var list api.List[api.Permission]
			w.mustDo(ownerToken, "GET", "/v1/permissions?limit=2&continue="+next, nil, &list)
			for _, p := range list.Items {
				all = append(all, p.Name)
			}
			if next = list.Continue; next == "" {
				break
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff(names, all); diff != "" {
			t.Error(diff)
		}
		var found api.List[api.Permission]
		w.mustDo(ownerToken, "GET", "/v1/permissions?search=B-", nil, &found)
		if len(found.Items) != 2 {
			t.Errorf("search B- found %d, want 2", len(found.Items))
		}
		w.mustDo(ownerToken, "GET", "/v1/permissions?search=_", nil, &found)
		if len(found.Items) != 0 {
			t.Errorf("search _ found %d: the underscore is a wildcard", len(found.Items))
		}
		for _, n := range []int{1, 2, 3} {
			w.waitForState(w.request(podRequest(n, "web")).ID, api.Granted)
		}
		var apps api.ApplicationList
		for query, want := range map[string]int{"ip=10.0.0.2": 1, "podUID=uid-00002": 1, "state=Granted&limit=2": 2, "state=Denied,Failed": 0, "namespace=shop": 3, "cluster=c2": 0} {
			apps = api.ApplicationList{}
			w.mustDo(adminToken, "GET", "/v1/applications?"+query, nil, &apps)
			if len(apps.Items) != want {
				t.Errorf("%s: %d, want %d", query, len(apps.Items), want)
			}
		}
	})
}

func TestAnInvalidRequestNamesTheField(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(nil, "web", "db")
	provider := func(change func(*api.Provider)) api.Provider {
		p := double.Registration("other", w.providerURL, "platform")
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		path  string
		body  any
		field string
	}{
		"name in capitals":           {"/v1/providers", provider(func(p *api.Provider) { p.Name = "Other" }), "name"},
		"no owner":                   {"/v1/providers", provider(func(p *api.Provider) { p.Owner = "" }), "owner"},
		"unknown type":               {"/v1/providers", provider(func(p *api.Provider) { p.Type = "ldap" }), "type"},
		"host that is not allowed":   {"/v1/providers", provider(func(p *api.Provider) { p.Endpoint = "http://169.254.169.254/latest" }), "endpoint"},
		"other scheme":               {"/v1/providers", provider(func(p *api.Provider) { p.Endpoint = "file:///etc/passwd" }), "endpoint"},
		"password in the endpoint":   {"/v1/providers", provider(func(p *api.Provider) { p.Endpoint = "http://u:p@127.0.0.1/" }), "endpoint"},
		"path as credential":         {"/v1/providers", provider(func(p *api.Provider) { p.CredentialsRef = "../tokens" }), "credentialsRef"},
		"credential without TLS":     {"/v1/providers", provider(func(p *api.Provider) { p.CredentialsRef = "secret" }), "endpoint"},
		"negative rate":              {"/v1/providers", provider(func(p *api.Provider) { p.RateLimit.PerSecond = -1 }), "rateLimit.perSecond"},
		"invalid expression":         {"/v1/providers", provider(func(p *api.Provider) { p.HTTP.Grant.Granted = "status ==" }), "http.grant.granted"},
		"expression of another type": {"/v1/providers", provider(func(p *api.Provider) { p.HTTP.Grant.Denied = "status" }), "http.grant.denied"},
		"template without }":         {"/v1/providers", provider(func(p *api.Provider) { p.HTTP.Grant.Path = "/${ip" }), "http.grant.path"},
		"unknown variable":           {"/v1/providers", provider(func(p *api.Provider) { p.HTTP.Grant.Body = map[string]any{"x": "${secret}"} }), "http.grant.body"},
		"no revoke request":          {"/v1/providers", provider(func(p *api.Provider) { p.HTTP.Revoke = nil }), "http.revoke"},
		"reserved header":            {"/v1/providers", provider(func(p *api.Provider) { p.HTTP.Grant.Headers = map[string]string{"authorization": "x"} }), "http.grant.headers.authorization"},
		"unknown field":              {"/v1/providers", `{"name":"x","colour":"red"}`, "colour"},
		"field of another type":      {"/v1/providers", `{"name":7}`, "name"},
		"invalid JSON":               {"/v1/providers", `name: x`, "body"},
		"unknown provider":           {"/v1/permissions", api.Permission{Meta: api.Meta{Name: "p", Owner: "team-a"}, Provider: "none"}, "provider"},
		"unknown permission":         {"/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "s", Owner: "team-a"}, Permissions: []string{"db", "none"}}, "permissions[1]"},
		"permission listed twice":    {"/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "s", Owner: "team-a"}, Permissions: []string{"db", "db"}}, "permissions[1]"},
		"empty set":                  {"/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "s", Owner: "team-a"}}, "permissions"},
		"pod without address":        {"/v1/applications", api.ApplicationRequest{Cluster: "c1", Namespace: "n", Pod: "p", PodUID: "u", Set: "web"}, "podIPs"},
		"name as address":            {"/v1/applications", api.ApplicationRequest{Cluster: "c1", Namespace: "n", Pod: "p", PodUID: "u", Set: "web", PodIPs: []string{"localhost"}}, "podIPs[0]"},
		"too many pod addresses":     {"/v1/applications", api.ApplicationRequest{Cluster: "c1", Namespace: "n", Pod: "p", PodUID: "u", Set: "web", PodIPs: make([]string, 5)}, "podIPs"},
		"too many node addresses":    {"/v1/applications", api.ApplicationRequest{Cluster: "c1", Namespace: "n", Pod: "p", PodUID: "u", Set: "web", PodIPs: []string{"10.0.0.1"}, NodeIPs: make([]string, 257)}, "nodeIPs"},
		"revoke without a cluster":   {"/v1/applications/revoke", api.RevokeRequest{PodUID: "u"}, "cluster"},
		"revoke without a pod":       {"/v1/applications/revoke", api.RevokeRequest{Cluster: "c1"}, "podUID"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, problem := w.do(adminToken, "POST", tc.path, tc.body, nil); status != 400 || problem.Field != tc.field {
				t.Errorf("%d %+v, want field %s", status, problem, tc.field)
			}
		})
	}
	if status, problem := w.do(serverToken, "POST", "/v1/applications", podRequest(1, "none"), nil); status != 404 || problem.Field != "set" {
		t.Errorf("unknown set: %d %+v", status, problem)
	}
	if status, _ := w.do(adminToken, "POST", "/v1/providers", strings.Repeat("x", 3<<20), nil); status != http.StatusRequestEntityTooLarge {
		t.Errorf("body of 3 MiB: status %d", status)
	}
}

func TestOnlyMatchingPodsMayRequestASet(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(nil, "web", "db")
	var set api.PermissionSet
	w.mustDo(ownerToken, "GET", "/v1/permissionsets/web", nil, &set)
	set.Pods = []api.PodPattern{{Cluster: "c1", Namespace: "shop-*"}, {Namespace: "*", ServiceAccount: "robot"}}
	w.mustDo(ownerToken, "PUT", "/v1/permissionsets/web", set, nil, "If-Match", `"1"`)
	for name, tc := range map[string]struct {
		namespace, account string
		status             int
	}{
		"other namespace": {"store", "default", 403}, "matching namespace": {"shop-eu", "default", 201}, "matching ServiceAccount": {"store", "robot", 201},
	} {
		t.Run(name, func(t *testing.T) {
			r := podRequest(1, "web")
			r.PodUID, r.Namespace, r.ServiceAccount = name, tc.namespace, tc.account
			if status, problem := w.do(serverToken, "POST", "/v1/applications", r, nil); status != tc.status || status == 403 && problem.Field != "set" {
				t.Errorf("%d %+v", status, problem)
			}
		})
	}
}

// RFC 9110: the scheme of Authorization is case-insensitive.
func TestTheSchemeOfATokenMayBeInLowerCase(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	if status, problem := w.do("", "GET", "/v1/providers", nil, nil, "Authorization", "bearer "+ownerToken); status != http.StatusOK {
		t.Errorf("%d %+v", status, problem)
	}
}

func TestAnAuthorizationErrorNamesTheUserAndTheRequirement(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	w.register(nil, "web", "db")
	a := w.waitForState(w.request(podRequest(1, "web")).ID, api.Granted)
	tokens := map[string]string{"none": "", "unknown": "wrong-token-0123456789", "bob": bystandToken, "olga": ownerToken, "server": serverToken, "other": otherToken}
	theirs := api.Permission{Meta: api.Meta{Name: "p", Owner: "team-b"}, Provider: "double", Parameters: map[string]string{"name": "p"}}
	for name, tc := range map[string]struct {
		user, method, path string
		body               any
		status             int
		contains           []string
	}{
		"no token":                            {"none", "GET", "/v1/providers", nil, 401, []string{"unauthenticated", "Authorization"}},
		"unknown token":                       {"unknown", "GET", "/v1/providers", nil, 401, []string{"not valid"}},
		"changing a provider needs an admin":  {"olga", "POST", "/v1/providers", double.Registration("x", w.providerURL, "team-a"), 403, []string{"olga", "team-a", "admin"}},
		"reading the audit needs an admin":    {"olga", "GET", "/v1/audit", nil, 403, []string{"olga", "platform"}},
		"permission of another team":          {"olga", "POST", "/v1/permissions", theirs, 403, []string{"olga", "team-b"}},
		"own permission":                      {"bob", "POST", "/v1/permissions", theirs, 201, nil},
		"permission of another team in a set": {"bob", "POST", "/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "mine", Owner: "team-b"}, Permissions: []string{"db"}}, 403, []string{"bob", "db", "team-a"}},
		"a user requests for a pod":           {"olga", "POST", "/v1/applications", podRequest(9, "web"), 403, []string{"olga", "c1"}},
		"another cluster requests for a pod":  {"other", "POST", "/v1/applications", podRequest(9, "web"), 403, []string{"other", "c2", "c1"}},
		"another cluster views":               {"other", "GET", "/v1/applications/" + a.ID, nil, 403, []string{"other"}},
		"another team views":                  {"bob", "GET", "/v1/applications/" + a.ID, nil, 403, []string{"bob", "team-a"}},
		"the owner views":                     {"olga", "GET", "/v1/applications/" + a.ID, nil, 200, nil},
		"another team views the history":      {"bob", "GET", "/v1/applications/" + a.ID + "/history", nil, 403, []string{"bob"}},
		"another team revokes":                {"bob", "POST", "/v1/applications/" + a.ID + "/revoke", nil, 403, []string{"bob"}},
		"another team resets":                 {"bob", "POST", "/v1/applications/" + a.ID + "/reset", nil, 403, []string{"bob"}},
		"another cluster revokes":             {"other", "POST", "/v1/applications/revoke", api.RevokeRequest{Cluster: "c1", PodUID: "uid-00001"}, 403, []string{"c2"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, problem := w.do(tokens[tc.user], tc.method, tc.path, tc.body, nil)
			if status != tc.status {
				t.Errorf("%d %+v", status, problem)
			}
			for _, word := range tc.contains {
				if !strings.Contains(problem.Message, word) {
					t.Errorf("message %q does not contain %q", problem.Message, word)
				}
			}
		})
	}
	var mine api.ApplicationList
	w.mustDo(bystandToken, "GET", "/v1/applications", nil, &mine)
	if len(mine.Items) != 0 {
		t.Errorf("list of another team: %+v", mine.Items)
	}
	w.mustDo(ownerToken, "GET", "/v1/applications", nil, &mine)
	if len(mine.Items) != 1 {
		t.Errorf("list of the owner has %d items, want 1", len(mine.Items))
	}
	var p api.Permission
	w.mustDo(bystandToken, "GET", "/v1/permissions/db", nil, &p)
	if diff := cmp.Diff([]string{"(hidden)"}, slices.Collect(maps.Values(p.Parameters))); diff != "" {
		t.Errorf("parameters are not redacted for another team: %s", diff)
	}
}

func TestAListOfUnknownStatesIsABadRequest(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	for query, valid := range map[string]bool{
		"state=Granted": true, "state=Granted,Leaked,Granted": true, "state=Granted&state=Leaked": true, "state=": true, "": true,
		"state=granted": false, "state=Granted,": false, "state=" + strings.Repeat(",", 1000): false, "state=Granted&state=x": false,
	} {
		status, problem := w.do(adminToken, "GET", "/v1/applications?"+query, nil, nil)
		if got := status == http.StatusOK; got != valid {
			t.Errorf("%s: %d", query, status)
		} else if !valid && (problem.Field != "state" || !strings.Contains(problem.Message, "Requested Applying Granted Denied Failed Revoking Revoked Leaked")) {
			t.Errorf("%s: %+v", query, problem)
		}
	}
}

// PostgreSQL cannot store or compare NUL; the centre would answer 503.
func TestNULInARequestIsABadRequest(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		w := newFixture(t, address)
		w.skipValidation = true
		for name, tc := range map[string]struct{ method, path, body, field string }{
			"search":     {"GET", "/v1/permissions?search=%00", "", "search"},
			"cluster":    {"GET", "/v1/applications?cluster=%00", "", "cluster"},
			"continue":   {"GET", "/v1/permissions?continue=AA", "", "continue"},
			"name":       {"GET", "/v1/permissions/a%00", "", "path"},
			"owner":      {"POST", "/v1/permissionsets", `{"name":"s","owner":"team-a\u0000","permissions":["p"]}`, "body"},
			"permission": {"POST", "/v1/permissionsets", `{"name":"s","owner":"team-a","permissions":["\u0000"]}`, "body"},
		} {
			if status, problem := w.do(adminToken, tc.method, tc.path, tc.body, nil); status != 400 || problem.Field != tc.field {
				t.Errorf("%s: %d %+v", name, status, problem)
			}
		}
	})
}

// With the minimum of two connections, the fixture holds one of them.
func TestAChangeOfASetNeedsOneConnection(t *testing.T) {
	w := newFixture(t, database.Postgres(t)+"&pool_max_conns=2")
	w.client = &http.Client{Timeout: 10 * time.Second}
	w.register(nil, "web", "db")
	w.mustDo(ownerToken, "POST", "/v1/permissions", api.Permission{Meta: api.Meta{Name: "cache", Owner: "team-a"}, Provider: "double"}, nil)
	held, err := w.centre.store.Writer().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	set := api.PermissionSet{Meta: api.Meta{Owner: "team-a"}, Permissions: []string{"db", "cache"}, Pods: []api.PodPattern{{Namespace: "shop"}}}
	w.mustDo(ownerToken, "PUT", "/v1/permissionsets/web", set, nil, "If-Match", `"1"`)
}
