package webhookpath

import (
	"bytes"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	certresources "knative.dev/pkg/webhook/certificates/resources"
)

// Access is how the API server calls the webhooks of a process at a time.
type Access struct {
	// CABundle verifies the certificate, Key is its private key.
	CABundle, Key []byte
	Time          time.Time
}

// AccessOf returns the access with the certificate of a Secret. It reports false while
// the Secret is incomplete.
func AccessOf(secret *corev1.Secret, now time.Time) (Access, bool) {
	a := Access{CABundle: secret.Data[certresources.CACert], Key: secret.Data[certresources.ServerKey], Time: now}
	return a, len(a.CABundle) > 0 && len(a.Key) > 0
}

// Path returns the path of a webhook.
func (a Access) Path(webhook string) string { return Path(a.Key, webhook, a.Time) }

// Set writes the CA bundle and the path of a webhook to its clientConfig.
func (a Access) Set(config *admissionregistrationv1.WebhookClientConfig, webhook string) {
	config.CABundle = a.CABundle
	if config.Service != nil {
		config.Service.Path = new(a.Path(webhook))
	}
}

// IsSet reports whether the clientConfig of a webhook has a Service and what Set
// writes.
func (a Access) IsSet(config admissionregistrationv1.WebhookClientConfig, webhook string) bool {
	return bytes.Equal(config.CABundle, a.CABundle) && config.Service != nil && ptr.Deref(config.Service.Path, "") == a.Path(webhook)
}
