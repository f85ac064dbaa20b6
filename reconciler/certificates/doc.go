// Package certificates issues the certificates of the Services that receive tokens, and
// publishes the CA that clients trust. Parts change and permission have a Set each, which the leader of their webhook
// maintains, because that maintains the certificate of the webhook already. The package
// writes objects that the manifests create empty, so it needs no right to create Secrets:
//
//	Secret <CA>             the private CA; only this package reads it
//	ConfigMap <CA>          the certificates that clients trust
//	Secret <service>-certs  the certificate of a Service
//
// A new CA is published before it signs certificates.
package certificates
