package webhookconfig

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

const (
	authority = "-----BEGIN CERTIFICATE-----"
	key       = "-----BEGIN PRIVATE KEY-----"
)

var now = time.Date(2026, 11, 23, 12, 3, 0, 0, time.UTC)

// path is the path of a webhook now.
func path(webhook string) string { return webhookpath.Path([]byte(key), webhook, now) }

func clientConfig(service, webhook, bundle string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: v1alpha1.SystemNamespace, Name: service, Path: new(path(webhook))},
		CABundle: []byte(bundle),
	}
}

func mutatingConfig(bundle string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "breakwater", ResourceVersion: "1"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			{
				Name: "a.kb.io", ClientConfig: clientConfig("webhook", "a.kb.io", bundle),
				TimeoutSeconds:  new(int32(3)),
				FailurePolicy:   new(admissionregistrationv1.Ignore),
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "true"}},
			},
			{Name: "elsewhere.kb.io", ClientConfig: clientConfig("another", "elsewhere.kb.io", "theirs")},
		},
	}
}

func validatingConfig(bundle string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "breakwater", ResourceVersion: "1"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "b.kb.io", ClientConfig: clientConfig("webhook", "b.kb.io", bundle)},
			{Name: "c.kb.io", ClientConfig: clientConfig("webhook", "c.kb.io", authority)},
		},
	}
}

func secret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "certs"}, Data: data}
}

func certificate() *corev1.Secret {
	return secret(map[string][]byte{"ca-cert.pem": []byte(authority), "server-key.pem": []byte(key)})
}

// newReconciler returns a leader that sees the objects.
func newReconciler(t *testing.T, objects ...runtime.Object) (*Reconciler, *fake.Clientset) {
	t.Helper()
	client := fake.NewSimpleClientset(objects...)
	index := func(is func(runtime.Object) bool) cache.Indexer {
		in := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for _, o := range objects {
			if !is(o) {
				continue
			}
			if err := in.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		return in
	}
	r := &Reconciler{
		Service: "webhook", Secret: "certs", Clock: clocktesting.NewFakePassiveClock(now), Client: client.AdmissionregistrationV1(),
		Mutating:    admissionlisters.NewMutatingWebhookConfigurationLister(index(is[*admissionregistrationv1.MutatingWebhookConfiguration])),
		Validating:  admissionlisters.NewValidatingWebhookConfigurationLister(index(is[*admissionregistrationv1.ValidatingWebhookConfiguration])),
		Secrets:     corelisters.NewSecretLister(index(is[*corev1.Secret])),
		LiveSecrets: client.CoreV1().Secrets(v1alpha1.SystemNamespace),
	}
	if err := r.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	return r, client
}

func is[T runtime.Object](o runtime.Object) bool { _, ok := o.(T); return ok }

func patches(client *fake.Clientset) []string {
	var found []string
	for _, a := range client.Actions() {
		if p, ok := a.(clientgotesting.PatchAction); ok {
			found = append(found, a.GetResource().Resource+" "+string(p.GetPatch()))
		}
	}
	return found
}

func withPath(path string) *admissionregistrationv1.MutatingWebhookConfiguration {
	config := mutatingConfig(authority)
	config.Webhooks[0].ClientConfig.Service.Path = new(path)
	return config
}

// untilTheNextPeriod reports whether err is nil or requeues the key for the next path.
func untilTheNextPeriod(err error) bool {
	requeue, after := controller.IsRequeueKey(err)
	return err == nil || requeue && after == webhookpath.UntilNextPeriod(now)
}

func TestTheCABundleAndThePathsAreWritten(t *testing.T) {
	const bundle = `"caBundle":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"`
	for name, tc := range map[string]struct {
		key     types.NamespacedName
		objects []runtime.Object
		want    []string
	}{
		"a bundle that is missing, and nothing of others' webhooks": {
			MutatingKey("breakwater"), []runtime.Object{certificate(), mutatingConfig("")},
			[]string{`mutatingwebhookconfigurations {"metadata":{"resourceVersion":"1"},"webhooks":[{"name":"a.kb.io","clientConfig":{` + bundle + `,"service":{"path":"` + path("a.kb.io") + `"}}}]}`},
		},
		"a bundle that is stale, and nothing where it is right": {
			ValidatingKey("breakwater"), []runtime.Object{certificate(), validatingConfig("stale")},
			[]string{`validatingwebhookconfigurations {"metadata":{"resourceVersion":"1"},"webhooks":[{"name":"b.kb.io","clientConfig":{` + bundle + `,"service":{"path":"` + path("b.kb.io") + `"}}}]}`},
		},
		"the path of the last period": {
			MutatingKey("breakwater"), []runtime.Object{certificate(), withPath(webhookpath.Path([]byte(key), "a.kb.io", now.Add(-webhookpath.PeriodLength)))},
			[]string{`mutatingwebhookconfigurations {"metadata":{"resourceVersion":"1"},"webhooks":[{"name":"a.kb.io","clientConfig":{` + bundle + `,"service":{"path":"` + path("a.kb.io") + `"}}}]}`},
		},
		"no path, as in the manifests": {
			MutatingKey("breakwater"), []runtime.Object{certificate(), withPath("")},
			[]string{`mutatingwebhookconfigurations {"metadata":{"resourceVersion":"1"},"webhooks":[{"name":"a.kb.io","clientConfig":{` + bundle + `,"service":{"path":"` + path("a.kb.io") + `"}}}]}`},
		},
		"nothing when all is right":                    {MutatingKey("breakwater"), []runtime.Object{certificate(), mutatingConfig(authority)}, nil},
		"nothing while there is no certificate":        {MutatingKey("breakwater"), []runtime.Object{secret(nil), mutatingConfig("")}, nil},
		"nothing while there is no Secret":             {MutatingKey("breakwater"), []runtime.Object{mutatingConfig("")}, nil},
		"nothing while there is no configuration":      {ValidatingKey("breakwater"), []runtime.Object{certificate(), mutatingConfig("")}, nil},
		"nothing to a configuration of another's name": {MutatingKey("other"), []runtime.Object{certificate(), mutatingConfig("")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, client := newReconciler(t, tc.objects...)
			if err := r.Reconcile(t.Context(), tc.key.String()); !untilTheNextPeriod(err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, patches(client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyTheCABundleAndThePathsAreWritten(t *testing.T) {
	r, client := newReconciler(t, certificate(), mutatingConfig("stale"))
	if err := r.Reconcile(t.Context(), MutatingKey("breakwater").String()); !untilTheNextPeriod(err) {
		t.Fatal(err)
	}
	got, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "breakwater", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mutatingConfig(authority), got); diff != "" {
		t.Error(diff)
	}
}

func TestAFormerLeaderReplacesNoNewerCABundle(t *testing.T) {
	generatedConfig := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: generated, ResourceVersion: "1"}}
	for name, key := range map[string]types.NamespacedName{
		"of a configuration of the manifests": ValidatingKey("breakwater"),
		"of a generated configuration":        MutatingKey(generated),
	} {
		t.Run(name, func(t *testing.T) {
			r, client := newReconciler(t, append(static(), generatedConfig)...)
			r.Static, r.Generated, r.Kinds, r.Namespaces = "breakwater", generated, cloneSets, client.CoreV1().Namespaces()
			r.Clock = clocktesting.NewFakePassiveClock(now.Add(webhookpath.PeriodLength)) // the paths must be written
			client.PrependReactor("patch", "*", func(a clientgotesting.Action) (bool, runtime.Object, error) {
				var patch metav1.PartialObjectMetadata
				if err := json.Unmarshal(a.(clientgotesting.PatchAction).GetPatch(), &patch); err != nil {
					t.Error(err)
				}
				// The new leader wrote version 2 after the former leader had read version 1.
				if patch.ResourceVersion == "1" {
					return true, nil, apierrs.NewConflict(a.GetResource().GroupResource(), key.Name, errors.New("it was modified"))
				}
				return true, nil, nil
			})
			if err := r.Reconcile(t.Context(), key.String()); !apierrs.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
		})
	}
}

// The caches of the Secret and of the configurations are not updated together.
func TestACachedCertificateReplacesNoNewerCABundle(t *testing.T) {
	r, client := newReconciler(t, certificate(), mutatingConfig("newer"))
	newer := secret(map[string][]byte{"ca-cert.pem": []byte("newer"), "server-key.pem": []byte(key)})
	if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), newer, newer.Namespace); err != nil {
		t.Fatal(err)
	}
	if err := r.Reconcile(t.Context(), MutatingKey("breakwater").String()); !untilTheNextPeriod(err) {
		t.Fatal(err)
	}
	if got := patches(client); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestOnlyTheLeaderWrites(t *testing.T) {
	r, client := newReconciler(t, certificate(), mutatingConfig(""))
	r.Demote(reconciler.UniversalBucket())
	if err := r.Reconcile(t.Context(), MutatingKey("breakwater").String()); !controller.IsSkipKey(err) {
		t.Errorf("got %v", err)
	}
	if got := patches(client); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

func TestAKeyThatIsNoConfigurationIsNotTriedAgain(t *testing.T) {
	r, _ := newReconciler(t)
	for _, key := range []string{"breakwater", "default/breakwater", "mutating/"} {
		if err := r.Reconcile(t.Context(), key); !controller.IsPermanentError(err) {
			t.Errorf("%s: got %v", key, err)
		}
	}
}
