package provider

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// The provider closes the connection of the previous call instead of answering. net/http may
// repeat such a request, if it can be repeated safely.
func TestACallSendsOneRequest(t *testing.T) {
	for name, call := range map[string]api.HTTPCall{
		"POST with a body":     {Body: map[string]any{"ip": "${ip}"}},
		"POST without a body":  {},
		"PUT with a key":       {Method: "PUT", Headers: map[string]string{"X-Idempotency-Key": "${key}"}},
		"DELETE":               {Method: "DELETE"},
		"GET":                  {Method: "GET"},
		"GET with a body":      {Method: "GET", Body: map[string]any{"ip": "${ip}"}},
		"redirected GET":       {Method: "GET", Path: "/moved"},
		"redirected PUT":       {Method: "PUT", Path: "/moved", Body: map[string]any{"ip": "${ip}"}},
		"redirected, no body":  {Method: "DELETE", Path: "/moved"},
		"redirected GET, body": {Method: "GET", Path: "/moved", Body: map[string]any{"ip": "${ip}"}},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			var closes atomic.Bool
			c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/moved" {
					http.Redirect(w, r, "/grants", http.StatusTemporaryRedirect)
					return
				}
				if r.Header.Get("Idempotency-Key") != "key-1" || r.TransferEncoding != nil || r.ContentLength < 0 {
					t.Errorf("Idempotency-Key %q, encodings %v, length %d", r.Header.Get("Idempotency-Key"), r.TransferEncoding, r.ContentLength)
				}
				requests.Add(1)
				if closes.Load() {
					panic(http.ErrAbortHandler)
				}
			}, func(p *api.Provider) { p.HTTP.Grant = call })
			grant := Call{Op: Grant, Key: "key-1", IPs: []string{"10.0.0.1"}}
			if got := c.Call(t.Context(), grant); got.Outcome != Done {
				t.Fatalf("first call: %+v", got)
			}
			closes.Store(true)
			if got := c.Call(t.Context(), grant); got.Outcome != Failed || !got.Sent {
				t.Errorf("second call: %+v", got)
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("the provider received %d requests of 2 calls", n)
			}
		})
	}
}
