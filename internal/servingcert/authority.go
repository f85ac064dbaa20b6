// Package servingcert issues the certificates of services that receive tokens, and
// verifies them. An Authority is a private CA. A successor of its CA is in the bundle
// of clients for years before it signs, so clients that cannot be updated, such as the
// init container of an existing pod, trust it too.
//
//	no CA -> Current -> Current and Next (5 years left) -> Next is Current (1 year left,
//	or Current is unreadable)
package servingcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

const (
	// year ignores leap years.
	year = 365 * 24 * time.Hour
	// authorityLife is how long a CA is valid.
	authorityLife = 10 * year
	// announceBefore is how long before the end of a CA its successor is added to the
	// bundle.
	announceBefore = 5 * year
	// replaceBefore is how long before the end of a CA its successor signs.
	replaceBefore = year
	// certificateLife is how long a certificate of a service is valid.
	certificateLife = 30 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is renewed.
	renewBefore = 10 * 24 * time.Hour
	// clockSkew is how far the clocks of two nodes may differ. The validity of a
	// certificate begins that long before the time of its issue.
	clockSkew = 24 * time.Hour
)

// KeyPair is a certificate and its private key, both PEM.
type KeyPair struct{ Cert, Key []byte }

// Authority is a private CA.
type Authority struct {
	// Current signs certificates.
	Current KeyPair
	// Next is the successor of Current; empty until Current has 5 years left.
	Next KeyPair
	// Previous is the certificate of the CA that Current replaced. Certificates that
	// it signed may still be in use.
	Previous []byte
}

// Renew returns the Authority that is to be used at a time, and whether it differs.
// An unreadable or expired CA is replaced: by its successor if there is a valid one,
// because clients trust it already.
func (a Authority) Renew(now time.Time) (Authority, bool, error) {
	left, next := a.Current.left(now), a.Next.left(now)
	var err error
	switch {
	case left < replaceBefore && next > left:
		a = Authority{Current: a.Next, Previous: Readable(a.Current.Cert)}
	case left <= 0:
		a = Authority{}
		a.Current, err = newCA(now)
	case left < announceBefore && next <= left:
		a.Next, err = newCA(now)
	default:
		return a, false, nil
	}
	return a, true, err
}

// Bundle returns the certificates that clients trust, PEM.
func (a Authority) Bundle() []byte {
	return bytes.Join([][]byte{a.Current.Cert, a.Next.Cert, a.Previous}, nil)
}

// Issue returns a certificate for the DNS names, the first of which is its subject.
func (a Authority) Issue(names []string, now time.Time) (KeyPair, error) {
	ca, err := tls.X509KeyPair(a.Current.Cert, a.Current.Key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("parse the CA: %w", err)
	}
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, &ca)
}

// IsUpToDate reports whether a certificate is valid for the DNS names, is signed by
// Current, and need not be renewed yet.
func (a Authority) IsUpToDate(pair KeyPair, names []string, now time.Time) bool {
	return pair.left(now) >= renewBefore && pair.verifies(a.Current.Cert, names, now)
}

// Trusts reports whether clients with the bundle of the Authority trust a certificate for the DNS names.
func (a Authority) Trusts(pair KeyPair, names []string, now time.Time) bool {
	return pair.verifies(a.Bundle(), names, now)
}

// verifies reports whether the certificate is valid for the DNS names and signed by one of the CAs.
func (p KeyPair) verifies(cas []byte, names []string, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cas)
	cert, err := p.parse()
	if err != nil {
		return false
	}
	for _, name := range names {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

func newCA(now time.Time) (KeyPair, error) {
	return sign(&x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Breakwater"}, CommonName: "Breakwater " + now.UTC().Format(time.DateOnly)},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(authorityLife),
		IsCA: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
}

// sign returns a certificate with a new key, signed by a CA; nil signs it with its own key.
func sign(template *x509.Certificate, ca *tls.Certificate) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate a serial number: %w", err)
	}
	template.SerialNumber, template.BasicConstraintsValid = serial, true
	parent, signer := template, any(key)
	if ca != nil {
		parent, signer = ca.Leaf, ca.PrivateKey
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign a certificate: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode a key: %w", err)
	}
	return KeyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

// parse returns the certificate. It is an error if the key is of another certificate.
func (p KeyPair) parse() (*x509.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	return pair.Leaf, err
}

// Readable returns a PEM certificate; nil if it is malformed, because a ConfigMap with it
// would be invalid.
func Readable(cert []byte) []byte {
	if !x509.NewCertPool().AppendCertsFromPEM(cert) {
		return nil
	}
	return cert
}

// left returns how long the certificate is valid; 0 if it is unreadable.
func (p KeyPair) left(now time.Time) time.Duration {
	cert, err := p.parse()
	if err != nil {
		return 0
	}
	return max(0, cert.NotAfter.Sub(now))
}
