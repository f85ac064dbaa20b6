package server

import (
	"context"
	"crypto/tls"
	"fmt"

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
	secrets := secretinformer.Get(ctx).Lister()
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return certificate(secrets, secret)
	}
	return config, nil
}

// certificate returns the certificate of a Secret.
func certificate(secrets corelisters.SecretLister, name string) (*tls.Certificate, error) {
	s, err := secrets.Secrets(v1alpha1.SystemNamespace).Get(name)
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(s.Data[certresources.ServerCert], s.Data[certresources.ServerKey])
	if err != nil {
		return nil, fmt.Errorf("parse the certificate of Secret %s: %w", name, err)
	}
	return &c, nil
}
