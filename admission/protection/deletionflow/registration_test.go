package deletionflow

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

func index(t *testing.T, objects ...any) cache.Indexer {
	t.Helper()
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, o := range objects {
		if err := all.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var now = time.Date(2026, 11, 23, 12, 3, 0, 0, time.UTC)

// expected reports whether Reconcile may return an error.
func expected(err error) bool {
	requeue, after := controller.IsRequeueKey(err)
	return err == nil || controller.IsSkipKey(err) || requeue && after == webhookpath.UntilNextPeriod(now)
}

func TestWebhooksAreRegisteredWhileAFlowControlExists(t *testing.T) {
	certificate := func(bundle string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "certs"},
			Data: map[string][]byte{certresources.CACert: []byte(bundle), certresources.ServerKey: []byte("key")}}
	}
	config := func(bundle string, change func(*admissionregistrationv1.ValidatingWebhook)) *admissionregistrationv1.ValidatingWebhookConfiguration {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Configuration, ResourceVersion: "1"}}
		if bundle != "" {
			all, err := Webhooks(webhookpath.Access{CABundle: []byte(bundle), Key: []byte("key"), Time: now})
			if err != nil {
				t.Fatal(err)
			}
			if change != nil {
				change(&all[0])
			}
			c.Webhooks = all
		}
		return c
	}
	for name, tc := range map[string]struct {
		config      *admissionregistrationv1.ValidatingWebhookConfiguration
		flows       []any
		certificate *corev1.Secret
		follower    bool
		writes      int
		want        string
	}{
		"the first flow control":            {config("", nil), []any{newFlow("a", 1, nil)}, certificate("ca"), false, 1, "ca"},
		"nothing to do":                     {config("ca", nil), []any{newFlow("a", 1, nil)}, certificate("ca"), false, 0, "ca"},
		"no flow control":                   {config("", nil), nil, certificate("ca"), false, 0, ""},
		"the last flow control was deleted": {config("ca", nil), nil, certificate("ca"), false, 1, ""},
		"a new certificate":                 {config("ca", nil), []any{newFlow("a", 1, nil)}, certificate("new"), false, 1, "new"},
		"no certificate yet":                {config("", nil), []any{newFlow("a", 1, nil)}, certificate(""), false, 0, ""},
		"a certificate during renewal":      {config("ca", nil), []any{newFlow("a", 1, nil)}, certificate(""), false, 0, "ca"},
		"a changed webhook":                 {config("ca", func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = nil }), []any{newFlow("a", 1, nil)}, certificate("ca"), false, 1, "ca"},
		"another replica is the leader":     {config("", nil), []any{newFlow("a", 1, nil)}, certificate("ca"), true, 0, ""},
		"the next path": {config("ca", func(w *admissionregistrationv1.ValidatingWebhook) {
			access := webhookpath.Access{CABundle: []byte("ca"), Key: []byte("key"), Time: now.Add(-webhookpath.PeriodLength)}
			access.Set(&w.ClientConfig, w.Name)
		}), []any{newFlow("a", 1, nil)}, certificate("ca"), false, 1, "ca"},
		"a deleted configuration": {nil, []any{newFlow("a", 1, nil)}, certificate("ca"), false, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client, configs := kubefake.NewClientset(tc.certificate), index(t)
			if tc.config != nil {
				client, configs = kubefake.NewClientset(tc.certificate, tc.config), index(t, tc.config)
			}
			e := &Registration{
				Client: client.AdmissionregistrationV1().ValidatingWebhookConfigurations(), Secret: "certs",
				Configs:      admissionlisters.NewValidatingWebhookConfigurationLister(configs),
				Secrets:      client.CoreV1().Secrets(v1alpha1.SystemNamespace),
				FlowControls: listers.NewPodDeletionFlowControlLister(index(t, tc.flows...)), Clock: clocktesting.NewFakePassiveClock(now),
			}
			if !tc.follower {
				if err := e.Promote(reconciler.UniversalBucket(), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Reconcile(t.Context(), Key.String()); !expected(err) {
				t.Fatal(err)
			}
			writes := slices.DeleteFunc(client.Actions(), func(a clientgotesting.Action) bool { return a.GetVerb() == "get" })
			if len(writes) != tc.writes {
				t.Errorf("%d writes: %v", len(writes), writes)
			}
			if tc.config == nil {
				return
			}
			after, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), Configuration, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			if tc.want != "" {
				want = []string{Webhook + " " + tc.want, NamespaceWebhook + " " + tc.want}
			}
			for _, w := range after.Webhooks {
				got = append(got, w.Name+" "+string(w.ClientConfig.CABundle))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
