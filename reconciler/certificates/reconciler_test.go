package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	_ "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret/fake"
	"knative.dev/pkg/network"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/wiring/wiringtest"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/builder"
)

type fixture struct {
	*Reconciler
	kube  *fake.Clientset
	clock *clocktesting.FakePassiveClock
}

// newFixture has the objects of part permission, and leads.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOf(t, CertsOfPermission())
}

func newFixtureOf(t *testing.T, certs ServingCerts) *fixture {
	t.Helper()
	manifest := "../../" + certs.Manifest
	kube := fake.NewClientset()
	for _, s := range builder.Manifests[corev1.Secret](t, manifest) {
		if s.Kind == "Secret" {
			if err := kube.Tracker().Add(&s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, cm := range builder.Manifests[corev1.ConfigMap](t, manifest) {
		if cm.Kind == "ConfigMap" {
			if err := kube.Tracker().Add(&cm); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))
	f := &fixture{&Reconciler{ServingCerts: certs, Client: kube.CoreV1(), Domain: "cluster.local", Clock: c}, kube, c}
	if err := f.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) reconcile(t *testing.T) {
	t.Helper()
	if again, _ := controller.IsRequeueKey(f.Reconcile(t.Context(), f.key().String())); !again {
		t.Fatal("the key is not reconciled again")
	}
}

func (f *fixture) getSecret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s, err := f.kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (f *fixture) configMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm, err := f.kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Get(t.Context(), f.CA, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

func (f *fixture) bundle(t *testing.T) string {
	t.Helper()
	return f.configMap(t).Data[servingcert.BundleKey]
}

func (f *fixture) verify(t *testing.T, service, host string) error {
	t.Helper()
	return f.verifyWith(t, f.bundle(t), service, host)
}

// verifyWith verifies the certificate of a Service as a client that trusts a bundle.
func (f *fixture) verifyWith(t *testing.T, bundle, service, host string) error {
	t.Helper()
	return verifyPair(pairOf(f.getSecret(t, service+"-certs")), []byte(bundle), host, f.clock.Now())
}

// verifyPair verifies a certificate of a host as a client that trusts a bundle.
func verifyPair(pair servingcert.KeyPair, bundle []byte, host string, now time.Time) error {
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now})
	return err
}

func TestClientsTrustTheServersByTheirConfiguredNames(t *testing.T) {
	f := newFixture(t)
	f.Domain = network.GetClusterDomainName()
	f.reconcile(t)
	s := settings.Default()
	for service, url := range map[string]string{"permission-centre": s.CentreURL, "init-action-server": s.InitActionServerURL} {
		if err := f.verify(t, service, strings.TrimPrefix(url, "https://")); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := f.verify(t, "permission-centre", "init-action-server.altershieldoperator-system.svc"); err == nil {
		t.Error("the certificate of the centre is valid for the init-action-server")
	}
	if strings.Contains(f.bundle(t), "PRIVATE") {
		t.Error("the ConfigMap has a key")
	}
	if f.CA != podmeta.BundleName {
		t.Errorf("clients read ConfigMap %s, not %s", podmeta.BundleName, f.CA)
	}
}

func TestClientsTrustOpenapiByTheNamesOfItsService(t *testing.T) {
	f := newFixtureOf(t, CertsOfChange())
	f.reconcile(t)
	for _, host := range []string{
		"openapi.altershieldoperator-system.svc", "openapi.altershieldoperator-system.svc.cluster.local", "localhost", // kubectl port-forward
	} {
		if err := f.verify(t, "openapi", host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := f.verify(t, "openapi", "webhook.altershieldoperator-system.svc"); err == nil {
		t.Error("the certificate of openapi is valid for the webhook")
	}
}

func TestCertificatesAreKeptUntilTheyEndSoon(t *testing.T) {
	f := newFixture(t)
	f.reconcile(t)
	before, writes := pairOf(f.getSecret(t, "permission-centre-certs")), len(f.kube.Actions())
	f.reconcile(t)
	for _, a := range f.kube.Actions()[writes:] {
		if a.GetVerb() != "get" {
			t.Errorf("%s of %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
	f.clock.SetTime(f.clock.Now().Add(25 * 24 * time.Hour))
	bundle := f.bundle(t)
	f.reconcile(t)
	if after := pairOf(f.getSecret(t, "permission-centre-certs")); string(after.Cert) == string(before.Cert) || f.bundle(t) != bundle {
		t.Error("the certificate is not renewed, or with it the CA")
	}
}

// A client that read the ConfigMap 15 days ago trusts the certificates of today.
func TestClientsTrustACABeforeItSigns(t *testing.T) {
	f := newFixture(t)
	f.reconcile(t)
	first := pairOf(f.getSecret(t, f.CA))
	end := f.clock.Now().AddDate(11, 0, 0)
	for replaced := false; !replaced; {
		if f.clock.Now().After(end) {
			t.Fatal("the CA is not replaced within 11 years")
		}
		before := f.bundle(t)
		f.clock.SetTime(f.clock.Now().AddDate(0, 0, 15))
		f.reconcile(t)
		replaced = string(pairOf(f.getSecret(t, f.CA)).Cert) != string(first.Cert)
		for _, service := range f.Services {
			if err := f.verifyWith(t, before, service, service+".altershieldoperator-system.svc"); err != nil {
				t.Fatalf("%s: %s: %v", f.clock.Now(), service, err)
			}
		}
	}
}

// checkVersions makes the fake client reject updates of an old version, as the API server does.
func (f *fixture) checkVersions() {
	f.kube.PrependReactor("update", "*", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		object, err := meta.Accessor(a.(clientgotesting.UpdateAction).GetObject())
		if err != nil {
			return true, nil, err
		}
		found, err := f.kube.Tracker().Get(a.GetResource(), a.GetNamespace(), object.GetName())
		if err != nil {
			return true, nil, err
		}
		current, err := meta.Accessor(found)
		if err != nil {
			return true, nil, err
		}
		if current.GetResourceVersion() != object.GetResourceVersion() {
			return true, nil, apierrs.NewConflict(a.GetResource().GroupResource(), object.GetName(), errors.New("it was modified"))
		}
		object.SetResourceVersion(object.GetResourceVersion() + "1")
		return false, nil, nil
	})
}

// pausing is a client that calls then once, after it read the CA.
type pausing struct {
	corev1client.CoreV1Interface
	then func()
}

func (p *pausing) Secrets(namespace string) corev1client.SecretInterface {
	return pausingSecrets{p.CoreV1Interface.Secrets(namespace), p}
}

type pausingSecrets struct {
	corev1client.SecretInterface
	pausing *pausing
}

func (p pausingSecrets) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := p.SecretInterface.Get(ctx, name, o)
	if then := p.pausing.then; name == CertsOfPermission().CA && then != nil {
		p.pausing.then = nil
		then()
	}
	return secret, err
}

func TestAFormerLeaderReplacesNothingOfANewerCA(t *testing.T) {
	empty := func(t *testing.T, f *fixture, what any) {
		t.Helper()
		var err error
		switch o := what.(type) {
		case *corev1.Secret:
			o.Data = nil
			_, err = f.kube.CoreV1().Secrets(o.Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
		case *corev1.ConfigMap:
			o.Data = nil
			_, err = f.kube.CoreV1().ConfigMaps(o.Namespace).Update(t.Context(), o, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, before := range map[string]func(*testing.T, *fixture){
		"with nothing to write":            func(*testing.T, *fixture) {},
		"with an empty ConfigMap to write": func(t *testing.T, f *fixture) { t.Helper(); empty(t, f, f.configMap(t)) },
		"with a certificate to issue":      func(t *testing.T, f *fixture) { t.Helper(); empty(t, f, f.getSecret(t, "permission-centre-certs")) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.checkVersions()
			f.reconcile(t)
			before(t, f)
			var published string
			former := &Reconciler{ServingCerts: f.ServingCerts, Domain: f.Domain, Clock: f.clock, Client: &pausing{f.kube.CoreV1(), func() {
				empty(t, f, f.getSecret(t, f.CA))
				f.reconcile(t)
				published = f.bundle(t)
			}}}
			if err := former.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
				t.Fatal(err)
			}
			if err := former.Reconcile(t.Context(), f.key().String()); err != nil && !apierrs.IsConflict(err) {
				if again, _ := controller.IsRequeueKey(err); !again {
					t.Fatal(err)
				}
			}
			if published == "" || f.bundle(t) != published {
				t.Error("the bundle of the older CA is published")
			}
			for _, service := range f.Services {
				if err := f.verifyWith(t, published, service, service+".altershieldoperator-system.svc"); err != nil {
					t.Errorf("%s: %v", service, err)
				}
			}
		})
	}
}

func TestDeletedDataIsWrittenAgain(t *testing.T) {
	for _, name := range []string{CertsOfPermission().CA, "permission-centre-certs", "init-action-server-certs"} {
		f := newFixture(t)
		f.reconcile(t)
		s := f.getSecret(t, name)
		s.Data = nil
		if _, err := f.kube.CoreV1().Secrets(s.Namespace).Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		f.reconcile(t)
		for _, service := range f.Services {
			if err := f.verify(t, service, service+".altershieldoperator-system.svc"); err != nil {
				t.Errorf("without the data of %s: %s: %v", name, service, err)
			}
		}
	}
}

func TestAMissingObjectIsNamedWithTheFix(t *testing.T) {
	f := newFixture(t)
	if err := f.kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Delete(t.Context(), f.CA, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.Reconcile(t.Context(), f.key().String()); err == nil || !strings.Contains(err.Error(), f.CA) || !strings.Contains(err.Error(), f.Manifest) {
		t.Errorf("%v", err)
	}
}

// A centre outside of the cluster needs no certificate here, so its Secret may be deleted.
func TestAMissingSecretDelaysNoOtherCertificate(t *testing.T) {
	for _, missing := range CertsOfPermission().Services {
		f := newFixture(t)
		f.reconcile(t)
		if err := f.kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Delete(t.Context(), missing+"-certs", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.clock.SetTime(f.clock.Now().Add(31 * 24 * time.Hour))
		if err := f.Reconcile(t.Context(), f.key().String()); err == nil || !strings.Contains(err.Error(), missing+"-certs") {
			t.Errorf("%v", err)
		}
		for _, service := range f.Services {
			if service == missing {
				continue
			}
			if err := f.verify(t, service, service+".altershieldoperator-system.svc"); err != nil {
				t.Errorf("without the Secret of %s: %s: %v", missing, service, err)
			}
		}
	}
}

func TestOnlyTheLeaderIssuesCertificates(t *testing.T) {
	f := newFixture(t)
	f.Demote(reconciler.UniversalBucket())
	if err := f.Reconcile(t.Context(), f.key().String()); !controller.IsSkipKey(err) || len(f.kube.Actions()) > 0 {
		t.Errorf("%v, %d requests", err, len(f.kube.Actions()))
	}
}

func TestTheWebhookOfAPartMayWriteItsCertificates(t *testing.T) {
	for _, certs := range []ServingCerts{CertsOfChange(), CertsOfPermission()} {
		secrets := []string{certs.CA}
		for _, service := range certs.Services {
			secrets = append(secrets, service+"-certs")
		}
		var found []string
		for _, role := range builder.Manifests[rbacv1.Role](t, "../../"+path.Join(path.Dir(certs.Manifest), "120-webhook-rbac.yaml")) {
			for _, rule := range role.Rules {
				switch {
				case slices.Equal(rule.Resources, []string{"secrets"}) && slices.Equal(rule.ResourceNames, secrets):
					found = append(found, "secrets "+strings.Join(rule.Verbs, ","))
				case slices.Equal(rule.Resources, []string{"configmaps"}) && slices.Equal(rule.ResourceNames, []string{certs.CA}):
					found = append(found, "configmaps "+strings.Join(rule.Verbs, ","))
				}
			}
		}
		if want := []string{"secrets get,update", "configmaps update"}; !slices.Equal(found, want) {
			t.Errorf("%s: the Role has %q, want %q", certs.CA, found, want)
		}
	}
}

func TestObjectsAreReadEachMinuteHoweverOftenThatFailed(t *testing.T) {
	t.Setenv("SYSTEM_NAMESPACE", v1alpha1.SystemNamespace)
	for name, construct := range map[string]injection.ControllerConstructor{
		"serving certificates": NewController(CertsOfPermission()), "certificate of a webhook": NewWebhookController,
	} {
		t.Run(name, func(t *testing.T) {
			wiringtest.CheckRetriesWithin(t, time.Minute, func(t *testing.T) *controller.Impl {
				ctx, _ := rtesting.SetupFakeContext(t)
				return construct(webhook.WithOptions(ctx, webhook.Options{SecretName: "certs", ServiceName: "webhook"}), nil)
			})
		})
	}
}
