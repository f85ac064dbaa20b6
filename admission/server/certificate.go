package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	knativetls "knative.dev/pkg/network/tls"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// tlsConfig returns the TLS configuration of a server with the certificate of a
// Secret. The environment variables WEBHOOK_TLS_* of Knative change it.
func tlsConfig(ctx context.Context, secret string) (*tls.Config, error) {
	config, err := knativetls.DefaultConfigFromEnv("WEBHOOK_")
	if err != nil {
		return nil, err
	}
	c := &certificate{secrets: secretinformer.Get(ctx).Lister(), name: secret}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get() }
	return config, nil
}

// certificate is the certificate of a Secret. It is parsed once for each state of the Secret: the
// readiness probe asks for it every second, and parsing costs more than the rest of the probe.
type certificate struct {
	secrets corelisters.SecretLister
	name    string
	last    atomic.Pointer[parsedSecret]
}

// parsedSecret is a Secret in the informer's cache, and what was read from it.
type parsedSecret struct {
	of   *corev1.Secret
	cert tls.Certificate
	err  error
}

func (c *certificate) get() (*tls.Certificate, error) {
	s, err := c.secrets.Secrets(v1alpha1.SystemNamespace).Get(c.name)
	if err != nil {
		return nil, err
	}
	last := c.last.Load()
	if last == nil || last.of != s { // the cache has a new object for each change
		last = &parsedSecret{of: s}
		last.cert, last.err = tls.X509KeyPair(s.Data[certresources.ServerCert], s.Data[certresources.ServerKey])
		c.last.Store(last)
	}
	if last.err != nil {
		return nil, fmt.Errorf("parse the certificate of Secret %s: %w", c.name, last.err)
	}
	return &last.cert, nil
}
