// Package server runs a process that serves webhooks: its readiness, its graceful
// shutdown, the Secret with its certificate, and the limits of callers and of unread reviews.
package server

import (
	"context"
	"net/http"
	"sync/atomic"
)

// readiness is the readiness probe: the process is ready once it listens, has a
// certificate and meets its own condition, until shutdown begins.
type readiness struct {
	// hasCertificate reports whether the certificate is usable; nil until watch.
	hasCertificate atomic.Pointer[func() bool]
	listening      atomic.Bool
	// condition is met before the process is ready for the first time; nil is no
	// condition. It is set before the process listens.
	condition func() bool
	// wasReady is set once the process was ready.
	wasReady atomic.Bool
}

// Handler returns the handler of the probe. It reports not ready once ctx ends.
func (r *readiness) Handler(ctx context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		switch hasCertificate := r.hasCertificate.Load(); {
		case ctx.Err() != nil:
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		case !r.listening.Load():
			http.Error(w, "not listening yet", http.StatusServiceUnavailable)
		case hasCertificate == nil || !(*hasCertificate)():
			http.Error(w, "no certificate yet", http.StatusServiceUnavailable)
		case !r.wasReady.Load() && r.condition != nil && !r.condition():
			http.Error(w, "not up to date yet", http.StatusServiceUnavailable)
		default:
			r.wasReady.Store(true)
			w.WriteHeader(http.StatusOK)
		}
	}
}

// watch makes the readiness depend on the certificate.
func (r *readiness) watch(c *certificate) {
	hasCertificate := func() bool {
		_, err := c.get()
		return err == nil
	}
	r.hasCertificate.Store(&hasCertificate)
}
