// Package server is what the processes that serve webhooks have in common:
// when they are ready, how they end, and which Secret they read.
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

// Readiness tells the kubelet when the API server may ask us: from when the
// caches are filled and there is a certificate, until the process is to end.
// (sharedmain serves it only after the caches are filled.)
type Readiness struct {
	// usable says whether there is a certificate to serve with; nil before
	// the controller is wired.
	usable atomic.Pointer[func() bool]
}

// Handler answers until ctx ends.
func (r *Readiness) Handler(ctx context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		switch usable := r.usable.Load(); {
		case ctx.Err() != nil:
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		case usable == nil || !(*usable)():
			http.Error(w, "no certificate yet", http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusOK)
		}
	}
}

// Watch has the readiness follow the Secret with the certificate.
func (r *Readiness) Watch(secrets corelisters.SecretLister, name string) {
	usable := func() bool {
		s, err := secrets.Secrets(v1alpha1.SystemNamespace).Get(name)
		if err != nil {
			return false
		}
		_, err = tls.X509KeyPair(s.Data[certresources.ServerCert], s.Data[certresources.ServerKey])
		return err == nil
	}
	r.usable.Store(&usable)
}
