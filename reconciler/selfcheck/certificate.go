package selfcheck

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// handshakeTimeout is the timeout of the TLS handshake with a replica.
const handshakeTimeout = 2 * time.Second

// presented returns the certificate that is served at an address. It is used
// instead of the Secret, because it is what the API server sees, and checking
// needs no access to the key.
func presented(ctx context.Context, address, host string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	dialer := &tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: host,
		InsecureSkipVerify: true, // nothing is sent; Decide verifies against each caBundle
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}
