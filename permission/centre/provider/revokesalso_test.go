package provider

import (
	"net/http"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func TestAGrantOfADatabaseIncludesThatOfItsTables(t *testing.T) {
	p := api.Provider{Type: api.ProviderMySQL}
	all, table := map[string]string{"database": "shop", "privileges": "SELECT"}, map[string]string{"database": "shop", "table": "orders", "privileges": "SELECT"}
	if !Includes(p, all, table) || Includes(p, table, all) {
		t.Errorf("the grant of the database includes that of the table: %t, the reverse: %t", Includes(p, all, table), Includes(p, table, all))
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
			if got := RevokesAlso(t.Context(), p, c, revoke, tc.other); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
