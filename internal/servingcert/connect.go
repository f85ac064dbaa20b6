package servingcert

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// connectTimeout bounds a connection with its TLS handshake.
const connectTimeout = 10 * time.Second

// BundleKey is the key of a ConfigMap with the certificates that clients trust.
const BundleKey = "ca.crt"

// ServerConfig returns the configuration of a server whose certificate and key are
// files. They are read for each connection, so a renewed certificate is used at once.
func ServerConfig(cert, key string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}}
}

// Bundle holds the certificates that a client trusts, PEM. The zero value is empty.
type Bundle struct {
	// Missing, if set, is part of the error when a server is not trusted and the bundle is
	// empty. It says who should have filled the bundle.
	Missing error
	pem     atomic.Pointer[string]
}

// Get returns the certificates.
func (b *Bundle) Get() string {
	if p := b.pem.Load(); p != nil {
		return *p
	}
	return ""
}

// Update reads the certificates from the data of a ConfigMap. Data without them changes
// nothing: a ConfigMap that is deleted and created again must not interrupt clients.
func (b *Bundle) Update(data map[string]string) {
	if next := data[BundleKey]; x509.NewCertPool().AppendCertsFromPEM([]byte(next)) {
		b.pem.Store(&next)
	}
}

// Trust makes t verify servers with the certificates of the bundle and those of the
// system. Each new connection uses the current bundle.
func (b *Bundle) Trust(t *http.Transport) {
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		roots.AppendCertsFromPEM([]byte(b.Get()))
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: connectTimeout}, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
		conn, err := d.DialContext(ctx, network, address)
		if b.Missing != nil && b.Get() == "" && errors.As(err, new(x509.UnknownAuthorityError)) {
			err = fmt.Errorf("%w: %w", err, b.Missing)
		}
		return conn, err
	}
}
