package selfcheck

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

const (
	service = "protection-webhook"
	host    = service + "." + v1alpha1.SystemNamespace + ".svc"
)

// certificate returns what is served, and what verifies it.
func certificate(t *testing.T, name string) (*x509.Certificate, []byte) {
	t.Helper()
	secret, err := resources.MakeSecret(t.Context(), "certs", v1alpha1.SystemNamespace, name)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(secret.Data[resources.ServerCert])
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, secret.Data[resources.CACert]
}

func newEntry(bundle []byte) Entry {
	return Entry{
		RequiredWebhook: RequiredWebhook{Configuration: "breakwater-protection", Webhook: "vpodbudget.kb.io", NamespaceLabel: "guarded", Value: "true"},
		Found: &admissionregistrationv1.ValidatingWebhook{
			Name:              "vpodbudget.kb.io",
			FailurePolicy:     new(admissionregistrationv1.Fail),
			Rules:             make([]admissionregistrationv1.RuleWithOperations, 1),
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{Name: service}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "true"}},
			ObjectSelector:    &metav1.LabelSelector{},
		},
		Namespaces: []*corev1.Namespace{labeled("shop", "true")},
	}
}

func labeled(name, guarded string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"guarded": guarded}}}
}

func TestUnenforcedGuards(t *testing.T) {
	served, bundle := certificate(t, service)
	other, otherBundle := certificate(t, "another")
	for _, tc := range []struct {
		name   string
		entry  func(*Entry)
		change func(*Input)
		want   []string
	}{
		{name: "none"},
		{name: "failurePolicy Ignore", entry: func(e *Entry) { e.Found.FailurePolicy = new(admissionregistrationv1.Ignore) }, want: []string{ReasonFailurePolicyIgnore}},
		{name: "failurePolicy Ignore, as in the manifest", entry: func(e *Entry) { e.Found.FailurePolicy, e.FailsOpen = new(admissionregistrationv1.Ignore), true }},
		{name: "webhook missing", entry: func(e *Entry) { e.Found = nil }, want: []string{ReasonGuardMissing}},
		{name: "another Service", entry: func(e *Entry) { e.Found.ClientConfig.Service.Name = "mine" }, want: []string{ReasonGuardMissing}},
		{name: "URL instead of a Service", entry: func(e *Entry) { e.Found.ClientConfig.Service = nil }, want: []string{ReasonGuardMissing}},
		{name: "an empty caBundle", entry: func(e *Entry) { e.Found.ClientConfig.CABundle = nil }, want: []string{ReasonCABundleStale}},
		{name: "a malformed caBundle", entry: func(e *Entry) { e.Found.ClientConfig.CABundle = []byte("ca") }, want: []string{ReasonCABundleStale}},
		{name: "the caBundle of another certificate", entry: func(e *Entry) { e.Found.ClientConfig.CABundle = otherBundle }, want: []string{ReasonCABundleStale}},
		{name: "a certificate of another name", entry: func(e *Entry) { e.Found.ClientConfig.CABundle = otherBundle },
			change: func(s *Input) { s.Served = []*x509.Certificate{other} }, want: []string{ReasonCABundleStale}},
		{name: "an expired certificate", change: func(s *Input) { s.Now = s.Now.Add(365 * 24 * time.Hour) }, want: []string{ReasonCABundleStale}},
		{name: "one replica of two serves with another certificate", change: func(s *Input) { s.Ready, s.Served = 2, append(s.Served, other) }, want: []string{ReasonCABundleStale}},
		{name: "no ready replica", change: func(s *Input) { s.Ready, s.Served = 0, nil }, want: []string{ReasonNoEndpoints}},
		{name: "no ready replica, empty caBundle", entry: func(e *Entry) { e.Found.ClientConfig.CABundle = nil },
			change: func(s *Input) { s.Ready, s.Served = 0, nil }, want: []string{ReasonNoEndpoints, ReasonCABundleStale}},
		{name: "one of two replicas unreachable", change: func(s *Input) { s.Ready = 2 }},
		{name: "all replicas unreachable", change: func(s *Input) { s.Served = nil }, want: []string{ReasonStateUnreadable}},
		{name: "a namespace without the label", entry: func(e *Entry) { e.Namespaces = append(e.Namespaces, labeled("new", "")) }, want: []string{ReasonNamespaceNotLabeled}},
		{name: "a namespace with another value", entry: func(e *Entry) { e.Namespaces = append(e.Namespaces, labeled("new", "yes")) }, want: []string{ReasonNamespaceNotLabeled}},
		{name: "two namespaces without the label", entry: func(e *Entry) { e.Namespaces = []*corev1.Namespace{labeled("a", ""), labeled("b", "")} },
			want: []string{ReasonNamespaceNotLabeled, ReasonNamespaceNotLabeled}},
		{name: "another namespaceSelector", entry: func(e *Entry) { e.Found.NamespaceSelector.MatchLabels = map[string]string{"team": "mine"} }, want: []string{ReasonNamespaceNotMatched}},
		{name: "an invalid namespaceSelector", entry: func(e *Entry) {
			e.Found.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
		}, want: []string{ReasonNamespaceNotMatched}},
		{name: "no namespaceSelector", entry: func(e *Entry) { e.Found.NamespaceSelector = nil }},
		{name: "an objectSelector", entry: func(e *Entry) { e.Found.ObjectSelector.MatchLabels = map[string]string{"guard": "me"} }, want: []string{ReasonNamespaceNotMatched}},
		{name: "no rules", entry: func(e *Entry) { e.Found.Rules = nil }, want: []string{ReasonNamespaceNotMatched}},
		{name: "no namespaces", entry: func(e *Entry) { e.Found.Rules, e.Namespaces = nil, nil }},
		{name: "policy missing", change: func(s *Input) { s.Policies[0].Exists = false }, want: []string{ReasonGuardMissing}},
		{name: "policy with failurePolicy Ignore", change: func(s *Input) { s.Policies[0].Denies = false }, want: []string{ReasonPolicyNotDenying}},
		{name: "binding missing", change: func(s *Input) { s.Policies[1].Exists = false }, want: []string{ReasonGuardMissing}},
		{name: "binding that does not deny", change: func(s *Input) { s.Policies[1].Denies = false }, want: []string{ReasonPolicyNotDenying}},
		{name: "a read fails", change: func(s *Input) { s.Failed = []Failure{{"vpodbudget.kb.io", errors.New("forbidden")}} }, want: []string{ReasonStateUnreadable}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := Input{
				Now: time.Now(), Service: service, Host: host, Ready: 1, Served: []*x509.Certificate{served},
				Entries:  []Entry{newEntry(bundle)},
				Policies: []Policy{{Name: "replicas", Exists: true, Denies: true}, {Name: "replicas", Binding: true, Exists: true, Denies: true}},
			}
			if tc.entry != nil {
				tc.entry(&s.Entries[0])
			}
			if tc.change != nil {
				tc.change(&s)
			}
			var got []string
			for _, f := range Decide(s) {
				if f.Object == "" || f.Message == "" {
					t.Errorf("a finding without guard or message: %+v", f)
				}
				got = append(got, f.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheMessageOfAnEmptyCABundleSaysWhatToDo(t *testing.T) {
	served, _ := certificate(t, service)
	for name, bundle := range map[string][]byte{"empty": nil, "malformed": []byte("ca")} {
		found := Decide(Input{Now: time.Now(), Service: service, Host: host, Ready: 1, Served: []*x509.Certificate{served}, Entries: []Entry{newEntry(bundle)}})
		if len(found) != 1 || !strings.Contains(found[0].Message, "caBundle") || !strings.Contains(found[0].Message, "log of Deployment "+service) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestAFindingIsConfirmedByASecondCheck(t *testing.T) {
	a, b := Finding{Reason: ReasonNamespaceNotLabeled, Object: "v", Namespace: "a"}, Finding{Reason: ReasonNamespaceNotLabeled, Object: "v", Namespace: "b"}
	said := a
	said.Message = "in other words"
	for name, tc := range map[string]struct{ before, now, want []Finding }{
		"the first time":        {nil, []Finding{a}, []Finding{}},
		"the second time":       {[]Finding{a}, []Finding{said}, []Finding{said}},
		"closed again":          {[]Finding{a}, nil, nil},
		"of another namespace":  {[]Finding{a}, []Finding{b}, []Finding{}},
		"one of two is known":   {[]Finding{a}, []Finding{a, b}, []Finding{a}},
		"of both, one is there": {[]Finding{a, b}, []Finding{b}, []Finding{b}},
	} {
		if diff := cmp.Diff(tc.want, confirmed(tc.before, tc.now)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
