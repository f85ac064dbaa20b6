package provider

import (
	"crypto/x509"
	"fmt"
)

// authorities returns the certificates, in PEM, of a field of a provider.
func authorities(field, certificates string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(certificates)) {
		return nil, fmt.Errorf("%s: contains no certificate in PEM", field)
	}
	return pool, nil
}
