package certificates

import (
	"bytes"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	"knative.dev/pkg/webhook"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// webhookQueueName differs from queueName, which may be in the same process. Knative's controller had this name in metrics.
const webhookQueueName = "WebhookCertificates"

// WebhookReconciler issues the certificate of a webhook, and the CA that signs it. Both are in one Secret, with the keys
// of Knative for the certificate and the bundle. Unlike Knative's controller it keeps the CA when it
// renews the certificate, so the API server trusts the new one before it is served.
type WebhookReconciler struct {
	reconciler.LeaderAwareFuncs
	Client  corev1client.CoreV1Interface
	Secrets corelisters.SecretLister
	// Secret and Service are names in SystemNamespace.
	Secret, Service string
	Clock           clock.PassiveClock

	// seen is the bundle in the Secret, since that time.
	seen  []byte
	since time.Time
}

var (
	_ controller.Reconciler  = (*WebhookReconciler)(nil)
	_ reconciler.LeaderAware = (*WebhookReconciler)(nil)
)

// NewWebhookController constructs the controller of the certificate of webhook.Options.
func NewWebhookController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	options, informer := webhook.GetOptions(ctx), secretinformer.Get(ctx)
	r := &WebhookReconciler{
		Client: kubeclient.Get(ctx).CoreV1(), Secrets: informer.Lister(),
		Secret: options.SecretName, Service: options.ServiceName, Clock: clock.RealClock{},
	}
	r.PromoteFunc = wiring.PromoteKeys(r.key())
	c := controller.NewContext(ctx, r, controller.ControllerOptions{
		WorkQueueName: webhookQueueName, Logger: logging.FromContext(ctx).Named(queueName), RateLimiter: wiring.RetryWithin(interval),
	})
	wiring.NewMust(ctx, "watch the Secret of the certificate").Watch(informer.Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: controller.FilterWithNameAndNamespace(v1alpha1.SystemNamespace, options.SecretName),
		Handler:    controller.HandleAll(c.Enqueue),
	})
	return c
}

// key is the only key of the queue.
func (r *WebhookReconciler) key() types.NamespacedName {
	return types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: r.Secret}
}

// Reconcile writes the Secret if the certificate is missing, not trusted or expires soon.
func (r *WebhookReconciler) Reconcile(ctx context.Context, k string) error {
	if !r.IsLeaderFor(r.key()) {
		return controller.NewSkipKey(k)
	}
	secret, err := r.Secrets.Secrets(v1alpha1.SystemNamespace).Get(r.Secret)
	if err != nil {
		return missing("Secret", r.Secret, "400-webhook-certificate.yaml", err)
	}
	data, changed, err := r.renewed(secret)
	if err != nil {
		return err
	}
	if changed {
		if err := write(ctx, r.Client, secret, data); err != nil {
			return err
		}
	}
	return controller.NewRequeueAfter(interval)
}

// renewed returns the content of the Secret, and whether it differs. A new CA signs only after its bundle was in the
// Secret for interval: the configurations have it then. A certificate that the API server does not trust is replaced at once.
func (r *WebhookReconciler) renewed(secret *corev1.Secret) (data map[string][]byte, changed bool, err error) {
	now, names := r.Clock.Now(), r.names()
	ca, _, err := authorityOf(secret).Renew(now)
	if err != nil {
		return nil, false, err
	}
	bundle := secret.Data[certresources.CACert]
	if !bytes.Equal(bundle, r.seen) {
		r.seen, r.since = bundle, now
	}
	if !bytes.Contains(bundle, ca.Current.Cert) {
		ca.Previous = servingcert.Readable(bundle) // of Knative's controller, or of a CA without its key
	}
	pair := webhookPairOf(secret)
	complete, trusted := bytes.Equal(bundle, ca.Bundle()), ca.Trusts(pair, names, now)
	switch published := complete && now.Sub(r.since) >= interval; {
	case complete && (ca.IsUpToDate(pair, names, now) || trusted && !published):
		return secret.Data, false, nil
	case published || !trusted:
		if pair, err = ca.Issue(names, now); err != nil {
			return nil, false, err
		}
	}
	data = dataOf(ca)
	data[certresources.CACert], data[certresources.ServerCert], data[certresources.ServerKey] = ca.Bundle(), pair.Cert, pair.Key
	return data, true, nil
}

func webhookPairOf(secret *corev1.Secret) servingcert.KeyPair {
	return servingcert.KeyPair{Cert: secret.Data[certresources.ServerCert], Key: secret.Data[certresources.ServerKey]}
}

// names returns the DNS names of the Service.
func (r *WebhookReconciler) names() []string {
	host := hostOf(r.Service)
	return []string{host + ".svc", host, r.Service}
}
