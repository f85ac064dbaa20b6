package webhookhealth

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Why a guard is open: reasons of Events, and labels of the metric.
const (
	// ReasonIgnored: what the webhook gives no answer to is let through.
	ReasonIgnored = "FailurePolicyIgnore"
	// ReasonMissing: the entry of a webhook, a policy or its binding is not there.
	ReasonMissing = "GuardMissing"
	// ReasonBundle: the API server cannot trust what the webhook serves with.
	ReasonBundle = "CABundleStale"
	// ReasonNoEndpoints: there is nobody to ask.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonUnhooked: a namespace lacks the label by which requests reach us.
	ReasonUnhooked = "NamespaceNotLabelled"
	// ReasonUnmatched: requests of an opted-in namespace are not asked about.
	ReasonUnmatched = "NamespaceNotMatched"
	// ReasonNotDenying: a policy does less than it is there for.
	ReasonNotDenying = "PolicyNotDenying"
	// ReasonUnknown: it cannot be found out.
	ReasonUnknown = "CheckFailed"
)

// Reasons returns all of them, in order.
func Reasons() []string {
	return []string{ReasonIgnored, ReasonMissing, ReasonBundle, ReasonNoEndpoints, ReasonUnhooked, ReasonUnmatched, ReasonNotDenying, ReasonUnknown}
}

// Finding is one guard that is open, and why.
type Finding struct {
	Reason, Guard string
	// Namespace is that which is not guarded; empty where it is not about one.
	Namespace string
	Message   string
}

// Entry is a webhook that has to be there, as it is found.
type Entry struct {
	Guard
	// Found is nil where it is not there. Of a mutating webhook it has what both
	// sorts have in common.
	Found *admissionregistrationv1.ValidatingWebhook
	// Namespaces are those whose requests have to reach it.
	Namespaces []*corev1.Namespace
}

// Policy is a ValidatingAdmissionPolicy, or a binding of one, as it is found.
type Policy struct {
	Name    string
	Binding bool
	There   bool
	// Denies: its failurePolicy is Fail, or its actions have Deny.
	Denies bool
}

// Seen is what was found.
type Seen struct {
	Now time.Time
	// Service is where the webhooks have to point, and Host its name in the
	// certificate.
	Service, Host string
	Entries       []Entry
	Policies      []Policy
	// Ready is how many replicas the API server may ask.
	Ready int
	// Served is what those that could be connected to serve with.
	Served []*x509.Certificate
	// Failed is what could not be read.
	Failed []error
}

// Decide returns what is open.
func Decide(s Seen) []Finding {
	var found []Finding
	if s.Ready == 0 {
		found = append(found, Finding{Reason: ReasonNoEndpoints, Guard: s.Service, Message: "no replica of the webhook is ready: requests that it would be asked about are refused, or let through where failurePolicy says so"})
	}
	if s.Ready > 0 && len(s.Served) == 0 {
		found = append(found, Finding{Reason: ReasonUnknown, Guard: s.Service, Message: "no ready replica of the webhook can be connected to"})
	}
	for _, err := range s.Failed {
		found = append(found, Finding{Reason: ReasonUnknown, Guard: s.Service, Message: err.Error()})
	}
	for _, e := range s.Entries {
		found = append(found, s.webhook(e)...)
	}
	for _, p := range s.Policies {
		found = append(found, policy(p)...)
	}
	return found
}

// webhook judges one entry.
func (s Seen) webhook(e Entry) []Finding {
	var found []Finding
	open := func(reason, message string) {
		found = append(found, Finding{Reason: reason, Guard: e.Webhook, Message: message})
	}
	w := e.Found
	if w == nil {
		open(ReasonMissing, "it is not in configuration "+e.Configuration+": nobody is asked")
		return found
	}
	if ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Ignore && !e.Ignores {
		open(ReasonIgnored, "its failurePolicy is Ignore: what it gives no answer to is let through")
	}
	if service := w.ClientConfig.Service; service == nil || service.Name != s.Service {
		open(ReasonMissing, "it does not point to Service "+s.Service)
	} else if err := s.trusts(w.ClientConfig.CABundle); err != nil {
		open(ReasonBundle, err.Error())
	}
	for _, n := range e.Namespaces {
		f := Finding{Guard: e.Webhook, Namespace: n.Name}
		switch {
		case e.Hook != "" && n.Labels[e.Hook] != e.Value:
			f.Reason = ReasonUnhooked
			f.Message = fmt.Sprintf("namespace %s has no label %s=%s: nobody is asked about its requests", n.Name, e.Hook, e.Value)
		case !matches(w, n):
			f.Reason = ReasonUnmatched
			f.Message = "nobody is asked about requests of namespace " + n.Name + ": rules, namespaceSelector or objectSelector are not those of the manifest"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// trusts says why the API server would not trust what is served.
func (s Seen) trusts(bundle []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("its caBundle has no certificate")
	}
	for _, c := range s.Served {
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: s.Host, CurrentTime: s.Now}); err != nil {
			return fmt.Errorf("its caBundle does not verify the certificate that is served: %w", err)
		}
	}
	return nil
}

// matches says whether requests of the namespace are asked about at all.
func matches(w *admissionregistrationv1.ValidatingWebhook, n *corev1.Namespace) bool {
	if len(w.Rules) == 0 || w.ObjectSelector != nil && len(w.ObjectSelector.MatchLabels)+len(w.ObjectSelector.MatchExpressions) > 0 {
		return false
	}
	if w.NamespaceSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
	return err == nil && selector.Matches(labels.Set(n.Labels))
}

// policy judges a policy or a binding.
func policy(p Policy) []Finding {
	what, less := "ValidatingAdmissionPolicy", "its failurePolicy is Ignore: what it cannot evaluate is let through"
	if p.Binding {
		what, less = "ValidatingAdmissionPolicyBinding", "its validationActions have no Deny: it only tells"
	}
	switch {
	case !p.There:
		return []Finding{{Reason: ReasonMissing, Guard: p.Name, Message: what + " is not there: nothing is refused"}}
	case !p.Denies:
		return []Finding{{Reason: ReasonNotDenying, Guard: p.Name, Message: what + ": " + less}}
	}
	return nil
}

// lasting returns what has been open for two looks: certificates are renewed,
// and caches are not all equally new.
func lasting(before, now []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(now), func(f Finding) bool { return !slices.ContainsFunc(before, f.same) })
}

// fresh returns what is in after and not in before.
func fresh(before, after []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(after), func(f Finding) bool { return slices.ContainsFunc(before, f.same) })
}

// same says whether two are about the same: a message has numbers and errors.
// Of namespaces there may be many at one guard.
func (f Finding) same(g Finding) bool {
	return f.Reason == g.Reason && f.Guard == g.Guard && f.Namespace == g.Namespace
}
