package webhookhealth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
)

// patience is how long a replica may take to shake hands.
const patience = 2 * time.Second

// presented returns the certificate that is served at an address. That is asked
// instead of the Secret: it is what counts, and nobody who looks needs its key.
func presented(ctx context.Context, address, host string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
