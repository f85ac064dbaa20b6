// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// identity is one client certificate: a user and its groups.
type identity struct {
	file, user string
	groups     []string
}

// identities lists the users of the cluster. The API server neither authorizes
// nor queues requests of admin, which is in system:masters. load is a
// cluster-admin by RBAC, for measurements with API priority and fairness.
func (c *cluster) identities() []identity {
	return []identity{
		{"admin", "breakwater-admin", []string{"system:masters"}},
		{"load", "breakwater-load", []string{"breakwater:load"}},
		{"controller-manager", "system:kube-controller-manager", nil},
		{"scheduler", "system:kube-scheduler", nil},
		{"proxy", "system:kube-proxy", nil},
		{"kubelet", "system:node:" + c.nodeName(), []string{"system:nodes"}},
		{"kwok", "breakwater-kwok", []string{"system:masters"}},
		{"dns", "breakwater-dns", []string{"system:masters"}},
		{"ingress", "breakwater-ingress", []string{"system:masters"}},
		{"apiserver-kubelet", "breakwater-apiserver", []string{"system:masters"}},
		{"announce", announcer, nil},
		{"front-proxy", "front-proxy", nil},
	}
}

// makePKI writes a new certificate authority, certificates and kubeconfigs.
// They are valid as long as the state exists.
func (c *cluster) makePKI() error {
	if err := os.MkdirAll(c.pki(""), 0o700); err != nil {
		return err
	}
	c.forgetClient() // it may have certificates of an earlier cluster
	ca, caKey, err := c.authority()
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(serviceAddress), net.ParseIP(c.nodeAddress), net.IPv4(127, 0, 0, 1)},
		DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc." + domain},
	}
	if err := c.certificate("apiserver", server, ca, caKey); err != nil {
		return err
	}
	kubeletServer := &x509.Certificate{
		Subject:     pkix.Name{CommonName: c.nodeName()},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(c.nodeAddress)},
		DNSNames:    []string{c.nodeName()},
	}
	if err := c.certificate("kubelet-server", kubeletServer, ca, caKey); err != nil {
		return err
	}
	for _, id := range c.identities() {
		client := &x509.Certificate{
			Subject:     pkix.Name{CommonName: id.user, Organization: id.groups},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if err := c.certificate(id.file, client, ca, caKey); err != nil {
			return err
		}
		if err := c.writeKubeconfig(id.file); err != nil {
			return err
		}
	}
	return c.serviceAccountKey()
}

func (c *cluster) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "breakwater-cluster"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
	}
	key, err := c.newKey("ca")
	if err != nil {
		return nil, nil, err
	}
	der, err := c.sign("ca", template, template, key, key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func (c *cluster) certificate(name string, template, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := c.newKey(name)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	_, err = c.sign(name, template, ca, key, caKey)
	return err
}

func (c *cluster) sign(name string, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = c.now().Add(-time.Hour) // stay valid if the clock steps back
	template.NotAfter = c.now().AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", name, err)
	}
	return der, writeFile(c.pki(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func (c *cluster) newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeFile(c.pki(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// serviceAccountKey signs service account tokens.
func (c *cluster) serviceAccountKey() error {
	key, err := c.newKey("service-account")
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writeFile(c.pki("service-account.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644)
}

// writeKubeconfig embeds the certificates, so a copy of the file works too. The
// API server has the same address from the host and from inside.
func (c *cluster) writeKubeconfig(user string) error {
	var parts [3]string
	for i, f := range []string{"ca.crt", user + ".crt", user + ".key"} {
		data, err := os.ReadFile(c.pki(f))
		if err != nil {
			return err
		}
		parts[i] = base64.StdEncoding.EncodeToString(data)
	}
	return writeFile(c.kubeconfig(user), fmt.Appendf(nil, kubeconfigTemplate, c.apiServer(), parts[0], user, parts[1], parts[2], c.name), 0o600)
}

const kubeconfigTemplate = `apiVersion: v1
kind: Config
current-context: %[6]s
clusters:
- name: %[6]s
  cluster:
    server: %[1]s
    certificate-authority-data: %[2]s
contexts:
- name: %[6]s
  context:
    cluster: %[6]s
    user: %[3]s
users:
- name: %[3]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`
