package provider

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

func TestTheClientOfAProviderIsReplacedWhenItIsChangedOrRegisteredAgain(t *testing.T) {
	egress, err := NewEgress([]string{"127.0.0.1"}, []string{"127.0.0.0/8"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cache := Cache{Factory: Factory{Egress: egress}}
	registered := time.Unix(1_700_000_000, 0)
	for _, tc := range []struct {
		name    string
		version int64
		created time.Time
		same    bool
	}{
		{"the first call", 1, registered, false},
		{"another call", 1, registered.UTC(), true},
		{"registered again", 1, registered.Add(time.Nanosecond), false},
		{"changed", 2, registered.Add(time.Nanosecond), false},
	} {
		called := false
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
		t.Cleanup(server.Close)
		client, err := cache.Client(api.Provider{Meta: api.Meta{Name: "p", Version: tc.version, Created: tc.created}, Type: api.ProviderHTTP,
			Endpoint: server.URL, TimeoutSeconds: 10, HTTP: &api.HTTPCalls{}})
		if err != nil {
			t.Fatal(err)
		}
		if r := client.Call(t.Context(), Call{Op: Grant}); r.Outcome != Done || called == tc.same {
			t.Errorf("%s: the endpoint of this registration is called: %v, %+v", tc.name, called, r)
		}
	}
}
