package certificates

import (
	"bytes"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// webhookFixture has a Secret with data, and leads.
type webhookFixture struct {
	*WebhookReconciler
	kube  *fake.Clientset
	index cache.Indexer
	clock *clocktesting.FakePassiveClock
}

func newWebhookFixture(t *testing.T, data map[string][]byte) *webhookFixture {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "webhook-certs"}, Data: data}
	kube, clock := fake.NewClientset(secret), clocktesting.NewFakePassiveClock(time.Now())
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	f := &webhookFixture{&WebhookReconciler{
		Client: kube.CoreV1(), Secrets: corelisters.NewSecretLister(index), Secret: secret.Name, Service: "webhook", Clock: clock,
	}, kube, index, clock}
	f.sync(t)
	if err := f.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
		t.Fatal(err)
	}
	return f
}

// sync updates the cache.
func (f *webhookFixture) sync(t *testing.T) *corev1.Secret {
	t.Helper()
	s, err := f.kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(t.Context(), f.Secret, metav1.GetOptions{})
	if err == nil {
		err = f.index.Update(s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (f *webhookFixture) reconcile(t *testing.T) *corev1.Secret {
	t.Helper()
	if again, _ := controller.IsRequeueKey(f.Reconcile(t.Context(), f.key().String())); !again {
		t.Fatal("the key is not reconciled again")
	}
	return f.sync(t)
}

// trusts returns why the API server, with the bundle of a Secret, does not trust the certificate of another.
func (f *webhookFixture) trusts(bundle, served *corev1.Secret) error {
	return verifyPair(webhookPairOf(served), bundle.Data[certresources.CACert], hostOf(f.Service)+".svc", f.clock.Now())
}

// The API server has the former bundle until a webhook wrote the new one to its configuration, and a replica whose cache
// is late serves the former certificate.
func TestEachCertificateOfAWebhookIsTrustedBeforeItIsServed(t *testing.T) {
	knative, err := certresources.MakeSecret(t.Context(), "webhook-certs", v1alpha1.SystemNamespace, "webhook")
	if err != nil {
		t.Fatal(err)
	}
	empty := newWebhookFixture(t, nil)
	for name, f := range map[string]*webhookFixture{
		"first installation":         newWebhookFixture(t, empty.reconcile(t).Data),
		"upgrade from an older part": newWebhookFixture(t, knative.Data),
	} {
		t.Run(name, func(t *testing.T) {
			// configured is what the API server has: it may be almost interval old.
			configured, written, writtenAt := f.sync(t), f.sync(t), f.clock.Now()
			certificates, bundles := map[string]bool{}, map[string]bool{}
			for end := f.clock.Now().AddDate(12, 0, 0); f.clock.Now().Before(end); { // the CA is replaced after 9 years
				if f.clock.Since(writtenAt) >= interval {
					configured = written
				}
				former, now := f.sync(t), f.reconcile(t)
				if err := errors.Join(f.trusts(configured, now), f.trusts(now, former), f.trusts(now, now)); err != nil {
					t.Fatalf("%s: %v", f.clock.Now(), err)
				}
				certificates[string(now.Data[certresources.ServerCert])], bundles[string(now.Data[certresources.CACert])] = true, true
				if !bytes.Equal(now.Data[certresources.CACert], written.Data[certresources.CACert]) {
					configured, written, writtenAt = written, now, f.clock.Now()
				}
				step := 13 * 24 * time.Hour // a certificate is renewed between its 20th and 30th day
				if f.clock.Since(writtenAt) < 2*interval {
					step = interval / 2
				}
				f.clock.SetTime(f.clock.Now().Add(step))
			}
			if len(certificates) < 12*12 || len(bundles) < 3 {
				t.Errorf("%d certificates, %d bundles", len(certificates), len(bundles))
			}
		})
	}
}

func TestACertificateThatIsNotTrustedIsReplacedAtOnce(t *testing.T) {
	issued := newWebhookFixture(t, nil).reconcile(t)
	without := func(keys ...string) map[string][]byte {
		data := issued.DeepCopy().Data
		for _, key := range keys {
			delete(data, key)
		}
		return data
	}
	for name, data := range map[string]map[string][]byte{
		"empty Secret":          nil,
		"no certificate":        without(certresources.ServerCert),
		"no key":                without(certresources.ServerKey),
		"no bundle":             without(certresources.CACert),
		"no CA and no bundle":   without(corev1.TLSCertKey, corev1.TLSPrivateKeyKey, certresources.CACert),
		"no key of the CA":      without(corev1.TLSPrivateKeyKey),
		"bundle of another one": {certresources.ServerCert: issued.Data[certresources.ServerCert], certresources.ServerKey: issued.Data[certresources.ServerKey], certresources.CACert: []byte("x")},
	} {
		f := newWebhookFixture(t, data)
		now := f.reconcile(t)
		if err := f.trusts(now, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := newWebhookFixture(t, without(corev1.TLSPrivateKeyKey))
	if now := f.reconcile(t); f.trusts(now, issued) != nil || f.trusts(issued, now) != nil {
		t.Errorf("a CA without its key: %v, %v", f.trusts(now, issued), f.trusts(issued, now))
	}
	f = newWebhookFixture(t, issued.Data)
	f.clock.SetTime(f.clock.Now().Add(31 * 24 * time.Hour))
	if now := f.reconcile(t); f.trusts(now, now) != nil || f.trusts(issued, now) != nil {
		t.Errorf("an expired certificate: %v, %v", f.trusts(now, now), f.trusts(issued, now))
	}
}

func TestOnlyTheLeaderIssuesTheCertificateOfAWebhook(t *testing.T) {
	f := newWebhookFixture(t, nil)
	f.Demote(reconciler.UniversalBucket())
	if err := f.Reconcile(t.Context(), f.key().String()); !controller.IsSkipKey(err) {
		t.Errorf("got %v", err)
	}
	if now := f.sync(t); len(now.Data) > 0 {
		t.Error("it wrote the Secret")
	}
}
