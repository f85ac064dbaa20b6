// Package certificates issues the certificates of the permission centre and of the
// init-action-server, which receive tokens, and publishes the CA that clients trust.
// It writes objects that the manifests create empty, so it needs no right to create
// Secrets:
//
//	Secret permission-ca          the private CA; only this package reads it
//	ConfigMap permission-ca       the certificates that clients trust
//	Secret permission-centre-certs, init-action-server-certs
//
// A new CA is published before it signs certificates. The controller runs in the permission
// webhook, whose leader maintains certificates already.
package certificates
