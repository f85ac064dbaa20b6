package provider

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func TestAGrantOfADatabaseIncludesThatOfItsTables(t *testing.T) {
	p := api.Provider{Type: api.ProviderMySQL}
	all, table := map[string]string{"database": "shop", "privileges": "SELECT"}, map[string]string{"database": "shop", "table": "orders", "privileges": "SELECT"}
	includes := func(parameters, other map[string]string) bool {
		return Includes(t.Context(), p, nil, Call{Parameters: parameters}, Call{Parameters: other})
	}
	if !includes(all, table) || includes(table, all) {
		t.Errorf("the grant of the database includes that of the table: %t, the reverse: %t", includes(all, table), includes(table, all))
	}
}

func TestARevocationRemovesAGrantWithOtherParametersIfItsRequestIsTheSame(t *testing.T) {
	before := map[string]string{"module": "orders", "level": "read"}
	for name, tc := range map[string]struct {
		typ   api.ProviderType
		call  *api.HTTPCall
		other map[string]string
		want  bool
	}{
		"the same parameters":                     {api.ProviderHTTP, &api.HTTPCall{Path: "/grants?module=${parameters.module}"}, map[string]string{"module": "orders", "level": "read"}, true},
		"a parameter of the path differs":         {api.ProviderHTTP, &api.HTTPCall{Path: "/grants?module=${parameters.module}"}, map[string]string{"module": "stock", "level": "read"}, false},
		"a parameter of the body differs":         {api.ProviderHTTP, &api.HTTPCall{Body: map[string]any{"of": "${parameters}"}}, map[string]string{"module": "orders", "level": "write"}, false},
		"a parameter of a header differs":         {api.ProviderHTTP, &api.HTTPCall{Headers: map[string]string{"Level": "${parameters.level}"}}, map[string]string{"module": "orders", "level": "write"}, false},
		"the request does not have the parameter": {api.ProviderHTTP, &api.HTTPCall{Path: "/grants?module=${parameters.module}"}, map[string]string{"module": "orders", "level": "write"}, true},
		"the request cannot be built":             {api.ProviderHTTP, &api.HTTPCall{Path: "/grants?module=${parameters.module}"}, map[string]string{}, false},
		"the provider cannot revoke":              {api.ProviderHTTP, nil, map[string]string{"module": "stock"}, false},
		"a CMDB has one record for an address":    {api.ProviderCMDB, nil, map[string]string{"module": "stock"}, true},
		"a database drops the user":               {api.ProviderMySQL, nil, map[string]string{"module": "stock"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var p api.Provider
			c := newClient(t, http.NotFound, func(of *api.Provider) {
				switch of.CanRevoke = tc.call != nil || tc.typ == api.ProviderCMDB; tc.typ {
				case api.ProviderHTTP:
					of.HTTP.Revoke = tc.call
				case api.ProviderCMDB:
					of.Type, of.HTTP = tc.typ, nil
				case api.ProviderMySQL:
				}
				p = *of
			})
			p.Type = tc.typ
			revoke := Call{Op: Revoke, Key: "key-1", IPs: []string{"10.0.0.1"}, Parameters: before}
			other := revoke
			other.Parameters = tc.other
			if got := RevokesAlso(t.Context(), p, c, revoke, other); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

// The revocation of a grant by its id removes another grant only if the provider gave both the same id.
func TestARevocationByIDRemovesOnlyAGrantWithItsID(t *testing.T) {
	var p api.Provider
	c := newClient(t, http.NotFound, func(of *api.Provider) {
		of.CanRevoke, of.HTTP.Revoke = true, &api.HTTPCall{Path: "/grants/${kept.id}"}
		p = *of
	})
	id := func(id string) map[string]any { return map[string]any{"id": id} }
	for name, tc := range map[string]struct {
		kept, other        map[string]any
		removes, certainly bool
	}{
		"the same id":           {id("7"), id("7"), true, true},
		"another id":            {id("7"), id("8"), false, false},
		"the other has none":    {id("7"), nil, true, false},
		"only the other has an": {nil, id("7"), true, false},
	} {
		for _, module := range []string{"orders", "stock"} {
			t.Run(name+", "+module, func(t *testing.T) {
				revoke := Call{Op: Revoke, Key: "key-1", IPs: []string{"10.0.0.1"}, Parameters: map[string]string{"module": "orders"}, Kept: tc.kept}
				other := revoke
				other.Parameters, other.Kept = map[string]string{"module": module}, tc.other
				removes := RevokesAlso(t.Context(), p, c, revoke, other)
				if certainly := removes && Includes(t.Context(), p, c, other, revoke); removes != tc.removes || certainly != tc.certainly {
					t.Errorf("removes %t, includes %t, want %t and %t", removes, certainly, tc.removes, tc.certainly)
				}
			})
		}
	}
}

// Otherwise the requests would be different, and the revocation would remove the other grant. There are enough addresses for
// CEL to look at the context.
func TestRequestsAreComparedAfterTheContextHasEnded(t *testing.T) {
	var p api.Provider
	c := newClient(t, http.NotFound, func(of *api.Provider) {
		of.CanRevoke, of.HTTP.Revoke = true, &api.HTTPCall{Path: "/grants", Body: map[string]any{"valid": "${ips.all(address, address != '')}"}}
		p = *of
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	revoke := Call{Op: Revoke, Key: "key-1", IPs: slices.Repeat([]string{"10.0.0.1"}, 1000), Parameters: map[string]string{"module": "orders"}}
	other := revoke
	other.Parameters = map[string]string{"module": "stock"}
	if !RevokesAlso(ctx, p, c, revoke, other) {
		t.Error("the requests are different")
	}
}

// A provider can give one of two grants a ticket, by which only their decisions are polled.
func TestAGrantIncludesAnotherOneIfTheirRevocationsReadNoKeptValue(t *testing.T) {
	for name, tc := range map[string]struct {
		revoke *api.HTTPCall
		other  map[string]string
	}{
		"the same parameters":                     {&api.HTTPCall{Path: "/grants?module=${parameters.module}"}, map[string]string{"module": "orders"}},
		"the request does not have the parameter": {&api.HTTPCall{Path: "/grants?module=${parameters.module}"}, map[string]string{"module": "orders", "level": "read"}},
		"the provider cannot revoke":              {nil, map[string]string{"module": "orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p api.Provider
			c := newClient(t, http.NotFound, func(of *api.Provider) {
				of.CanRevoke, of.HTTP.Revoke = tc.revoke != nil, tc.revoke
				p = *of
			})
			call := Call{Op: Revoke, Key: "key-1", IPs: []string{"10.0.0.1"}, Parameters: map[string]string{"module": "orders"}}
			other := call
			other.Parameters, other.Kept = tc.other, map[string]any{"ticket": "7"}
			if !RevokesAlso(t.Context(), p, c, call, other) || !Includes(t.Context(), p, c, other, call) || !Includes(t.Context(), p, c, call, other) {
				t.Error("the grants do not count as one")
			}
		})
	}
}
