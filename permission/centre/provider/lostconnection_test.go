package provider

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/pipenetwork"
)

// Without pings, an HTTP/2 connection outlives the timeouts of its requests.
func TestACallLeavesAConnectionThatWasLostSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenetwork.Network
		ca := network.ServeTLS(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		c := newClientOf(t, api.Provider{Meta: api.Meta{Name: "p"}, Type: api.ProviderHTTP, Endpoint: "https://127.0.0.1", CredentialsRef: "secret",
			TimeoutSeconds: 1, HTTP: &api.HTTPCalls{CA: ca, Grant: api.HTTPCall{Path: "/grants"}}}, nil)
		transport := c.(*httpClient).http.Transport.(sendOnce).next.(*http.Transport)
		defer transport.CloseIdleConnections()
		transport.DialContext = network.Dial("192.0.2.1")
		network.CheckLoss(t, func() error {
			if got := c.Call(t.Context(), Call{Op: Grant}); got.Outcome != Done {
				return fmt.Errorf("got %+v", got)
			}
			return nil
		})
	})
}
