// Package httptransport has the transport of the HTTP clients of servers that Breakwater does not run, such as a
// provider or Prometheus.
package httptransport

import (
	"net/http"
	"time"
)

// New returns a copy of http.DefaultTransport with pings of HTTP/2, which close a lost connection 15 seconds after its
// last frame. A timeout ends only its request: without pings, all further requests wait on this connection until
// the kernel closes it after about 15 minutes.
func New() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
	return t
}
