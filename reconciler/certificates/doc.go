// Package certificates issues the certificates of the Services that receive tokens, and
// publishes the CA that clients trust. Parts change and permission each have ServingCerts.
// The leader of the part's webhook maintains them and its own certificate (WebhookReconciler).
// The package writes objects that the manifests create empty, so it needs
// no right to create Secrets:
//
//	Secret <CA>             the private CA; only this package reads it
//	ConfigMap <CA>          the certificates that clients trust
//	Secret <service>-certs  the certificate of a Service
//	Secret <webhook>-certs  the certificate of a webhook, its private CA, and what the API server trusts
//
// A new CA is published before it signs certificates.
package certificates
