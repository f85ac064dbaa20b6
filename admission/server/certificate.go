package server

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	knativetls "knative.dev/pkg/network/tls"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// tlsConfig returns the TLS configuration of a server with the certificate. The environment
// variables WEBHOOK_TLS_* of Knative change it.
func tlsConfig(c *certificate) (*tls.Config, error) {
	config, err := knativetls.DefaultConfigFromEnv("WEBHOOK_")
	if err != nil {
		return nil, err
	}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get() }
	return config, nil
}

// certificate is the certificate of a Secret. It is parsed once for each state of the Secret: the
// readiness probe asks for it every second, and parsing costs more than the rest of the probe.
type certificate struct {
	secrets corelisters.SecretLister
	name    string
	last    atomic.Pointer[parsedSecret]
	// usable is the last certificate that was read.
	usable atomic.Pointer[tls.Certificate]
}

// parsedSecret is a Secret in the informer's cache, and what was read from it.
type parsedSecret struct {
	of   *corev1.Secret
	cert tls.Certificate
	err  error
}

// get returns the certificate to serve. If the Secret has none, it is the last one that was read, which the API server still
// trusts.
func (c *certificate) get() (*tls.Certificate, error) {
	cert, err := c.inSecret()
	if usable := c.usable.Load(); err != nil && usable != nil {
		return usable, nil
	}
	return cert, err
}

// inSecret returns the certificate that is in the Secret now.
func (c *certificate) inSecret() (*tls.Certificate, error) {
	s, err := c.secrets.Secrets(v1alpha1.SystemNamespace).Get(c.name)
	if err != nil {
		return nil, err
	}
	last := c.last.Load()
	if last == nil || last.of != s { // the cache has a new object for each change
		last = &parsedSecret{of: s}
		last.cert, last.err = tls.X509KeyPair(s.Data[certresources.ServerCert], s.Data[certresources.ServerKey])
		c.last.Store(last)
		if last.err == nil {
			c.usable.Store(&last.cert)
		}
	}
	if last.err != nil {
		return nil, fmt.Errorf("parse the certificate of Secret %s: %w", c.name, last.err)
	}
	return &last.cert, nil
}
