package provider

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/pipenetwork"
)

// Without pings, an HTTP/2 connection outlives the timeouts of its requests.
func TestACallLeavesAConnectionThatWasLostSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenetwork.Network
		ca := network.ServeTLS(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("protocol %s", r.Proto)
			}
		}))
		c := newClientOf(t, api.Provider{Meta: api.Meta{Name: "p"}, Type: api.ProviderHTTP, Endpoint: "https://127.0.0.1", CredentialsRef: "secret",
			TimeoutSeconds: 1, HTTP: &api.HTTPCalls{CA: ca, Grant: api.HTTPCall{Path: "/grants"}}}, nil)
		transport := c.(*httpClient).http.Transport.(sendOnce).next.(*http.Transport)
		defer transport.CloseIdleConnections()
		transport.DialContext = network.Dial("192.0.2.1")
		grant := func() Result { return c.Call(t.Context(), Call{Op: Grant}) }
		if got := grant(); got.Outcome != Done {
			t.Fatalf("got %+v", got)
		}
		network.Lose()
		if got := grant(); got.Reason != ReasonProviderTimeout || !got.Sent {
			t.Errorf("on the lost connection: %+v", got)
		}
		time.Sleep(15 * time.Second)
		if got := grant(); got.Outcome != Done {
			t.Errorf("15 seconds later: %+v", got)
		}
	})
}
