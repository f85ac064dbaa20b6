package certificates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
)

const (
	// interval is how often the objects are read, also after errors: an object that a person deleted or
	// emptied is written again after this time.
	interval = time.Minute
	// nextCert, nextKey and previousCert are keys of the Secret with the CA, in addition to
	// those of a certificate.
	nextCert, nextKey, previousCert = "next.crt", "next.key", "previous.crt"
)

// ServingCerts are the certificates of one CA. A manifest creates their objects, so that the process
// that issues them needs no right to create Secrets.
type ServingCerts struct {
	// CA names the Secret with the CA, and the ConfigMap with the certificates that clients
	// trust.
	CA string
	// Services are the names of the Services with certificates. The Secret of one is named
	// <service>-certs.
	Services []string
	// Manifest is the file with the objects.
	Manifest string
}

// CertsOfChange returns the certificates of part change.
func CertsOfChange() ServingCerts {
	return ServingCerts{CA: "openapi-ca", Services: []string{"openapi"}, Manifest: "config/core/401-certificates.yaml"}
}

// CertsOfPermission returns the certificates of part permission.
func CertsOfPermission() ServingCerts {
	return ServingCerts{CA: "permission-ca", Services: []string{"permission-centre", "init-action-server"}, Manifest: "config/permission/401-certificates.yaml"}
}

// key is the only key of the queue.
func (c ServingCerts) key() types.NamespacedName {
	return types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: c.CA}
}

// Reconciler issues the certificates; only the leader does so.
type Reconciler struct {
	reconciler.LeaderAwareFuncs
	ServingCerts
	Client corev1client.CoreV1Interface
	// Domain is the DNS domain of the cluster.
	Domain string
	Clock  clock.PassiveClock
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile issues certificates that are missing or expire soon. A conflict with another writer
// is retried.
func (r *Reconciler) Reconcile(ctx context.Context, k string) error {
	if !r.IsLeaderFor(r.key()) {
		return controller.NewSkipKey(k)
	}
	// What depends on the CA is read before it: if the process is paused after reading the
	// CA and is no longer the leader, its writes conflict with those of a newer CA.
	bundle, err := r.Client.ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, r.CA, metav1.GetOptions{})
	if err != nil {
		return missing("ConfigMap", r.CA, r.Manifest, err)
	}
	served := map[string]*corev1.Secret{}
	var failed error
	for _, service := range r.Services {
		secret, err := r.secret(ctx, service+"-certs")
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		served[service] = secret
	}
	ca, err := r.authority(ctx)
	if err != nil {
		return err
	}
	if err := r.publish(ctx, bundle, ca); err != nil {
		return err
	}
	for service, secret := range served {
		failed = errors.Join(failed, r.issue(ctx, ca, service, secret))
	}
	if failed != nil {
		return failed
	}
	return controller.NewRequeueAfter(interval)
}

// authority returns the CA. If it has to be renewed, authority renews and writes it.
func (r *Reconciler) authority(ctx context.Context) (servingcert.Authority, error) {
	secret, err := r.secret(ctx, r.CA)
	if err != nil {
		return servingcert.Authority{}, err
	}
	ca, changed, err := authorityOf(secret).Renew(r.Clock.Now())
	if err != nil || !changed {
		return ca, err
	}
	return ca, write(ctx, r.Client, secret, dataOf(ca))
}

func authorityOf(secret *corev1.Secret) servingcert.Authority {
	return servingcert.Authority{
		Current: pairOf(secret), Next: servingcert.KeyPair{Cert: secret.Data[nextCert], Key: secret.Data[nextKey]}, Previous: secret.Data[previousCert],
	}
}

func dataOf(ca servingcert.Authority) map[string][]byte {
	return map[string][]byte{
		corev1.TLSCertKey: ca.Current.Cert, corev1.TLSPrivateKeyKey: ca.Current.Key, nextCert: ca.Next.Cert, nextKey: ca.Next.Key, previousCert: ca.Previous,
	}
}

// publish writes the certificates that clients trust.
func (r *Reconciler) publish(ctx context.Context, cm *corev1.ConfigMap, ca servingcert.Authority) error {
	bundle := string(ca.Bundle())
	if cm.Data[servingcert.BundleKey] == bundle {
		return nil
	}
	cm = cm.DeepCopy()
	cm.Data = map[string]string{servingcert.BundleKey: bundle}
	if _, err := r.Client.ConfigMaps(cm.Namespace).Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", cm.Name, err)
	}
	logging.FromContext(ctx).Infow("wrote the certificates that clients trust", "configMap", cm.Name)
	return nil
}

// issue issues a certificate for a Service, unless the present one is valid.
func (r *Reconciler) issue(ctx context.Context, ca servingcert.Authority, service string, secret *corev1.Secret) error {
	names := r.names(service)
	if ca.IsUpToDate(pairOf(secret), names, r.Clock.Now()) {
		return nil
	}
	pair, err := ca.Issue(names, r.Clock.Now())
	if err != nil {
		return err
	}
	return write(ctx, r.Client, secret, map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key})
}

// names returns the DNS names of a Service. localhost is for kubectl port-forward.
func (r *Reconciler) names(service string) []string {
	host := hostOf(service)
	return []string{host + ".svc", host + ".svc." + r.Domain, host, service, "localhost"}
}

func hostOf(service string) string { return service + "." + v1alpha1.SystemNamespace }

func (r *Reconciler) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := r.Client.Secrets(v1alpha1.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, missing("Secret", name, r.Manifest, err)
	}
	return secret, nil
}

// missing returns why an object cannot be read; manifest creates it.
func missing(kind, name, manifest string, err error) error {
	if apierrs.IsNotFound(err) {
		return fmt.Errorf("%s %s does not exist: apply %s again", kind, name, manifest)
	}
	return fmt.Errorf("get %s %s: %w", kind, name, err)
}

func write(ctx context.Context, client corev1client.SecretsGetter, secret *corev1.Secret, data map[string][]byte) error {
	maps.DeleteFunc(data, func(_ string, value []byte) bool { return len(value) == 0 })
	secret = secret.DeepCopy()
	secret.Data = data
	if _, err := client.Secrets(secret.Namespace).Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write Secret %s: %w", secret.Name, err)
	}
	logging.FromContext(ctx).Infow("wrote certificates", "secret", secret.Name)
	return nil
}

func pairOf(secret *corev1.Secret) servingcert.KeyPair {
	return servingcert.KeyPair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}
