// Package server runs a process that serves webhooks: its readiness, its graceful
// shutdown, and the Secret with its certificate.
package server

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync/atomic"

	corelisters "k8s.io/client-go/listers/core/v1"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Readiness is the readiness probe: the process is ready once the caches are synced
// and a certificate exists, until shutdown begins. The probe is served only after the
// caches are synced.
type Readiness struct {
	// hasCertificate reports whether the certificate is usable; nil until Watch.
	hasCertificate atomic.Pointer[func() bool]
}

// Handler returns the handler of the probe. It reports not ready once ctx ends.
func (r *Readiness) Handler(ctx context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		switch hasCertificate := r.hasCertificate.Load(); {
		case ctx.Err() != nil:
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		case hasCertificate == nil || !(*hasCertificate)():
			http.Error(w, "no certificate yet", http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusOK)
		}
	}
}

// Watch makes the readiness depend on the Secret with the certificate.
func (r *Readiness) Watch(secrets corelisters.SecretLister, name string) {
	hasCertificate := func() bool {
		s, err := secrets.Secrets(v1alpha1.SystemNamespace).Get(name)
		if err != nil {
			return false
		}
		_, err = tls.X509KeyPair(s.Data[certresources.ServerCert], s.Data[certresources.ServerKey])
		return err == nil
	}
	r.hasCertificate.Store(&hasCertificate)
}
