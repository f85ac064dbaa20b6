//go:build controlplane

package attack

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	pkgreconciler "knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/reconciler/certificates"
)

// as returns a client with the rights of a user.
func as(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = user
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func TestOnlyTheWebhookIssuesTheCertificateOfOpenapiAndEverybodyReadsItsCA(t *testing.T) {
	f := newFixture(t)
	const account = "system:serviceaccount:" + v1alpha1.SystemNamespace + ":"
	reconcile := func(user string) error {
		r := &certificates.Reconciler{ServingCerts: certificates.CertsOfChange(), Client: as(t, user).CoreV1(), Domain: "cluster.local", Clock: clock.RealClock{}}
		if err := r.Promote(pkgreconciler.UniversalBucket(), func(pkgreconciler.Bucket, types.NamespacedName) {}); err != nil {
			t.Fatal(err)
		}
		return r.Reconcile(t.Context(), v1alpha1.SystemNamespace+"/"+r.CA)
	}
	for _, user := range []string{account + "openapi", account + "controller", attacker} {
		if err := reconcile(user); !apierrs.IsForbidden(err) {
			t.Errorf("%s issues a certificate: %v", user, err)
		}
	}
	if again, _ := controller.IsRequeueKey(reconcile(account + "webhook")); !again {
		t.Fatal("the webhook issues no certificate")
	}
	secret, err := f.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(t.Context(), "openapi-certs", metav1.GetOptions{})
	if err != nil || len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
		t.Errorf("the Secret has %d keys, %v", len(secret.Data), err)
	}
	bundle, err := as(t, attacker).CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Get(t.Context(), "openapi-ca", metav1.GetOptions{})
	if err != nil || bundle.Data[servingcert.BundleKey] == "" {
		t.Errorf("a user without a role in the namespace: %v", err)
	}
	for _, name := range []string{"openapi-ca", "openapi-certs"} {
		for _, user := range []string{account + "openapi", attacker} {
			if _, err := as(t, user).CoreV1().Secrets(v1alpha1.SystemNamespace).Get(t.Context(), name, metav1.GetOptions{}); !apierrs.IsForbidden(err) {
				t.Errorf("%s reads Secret %s: %v", user, name, err)
			}
		}
	}
}
