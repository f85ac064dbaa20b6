package selfcheck

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

// Reasons why a guard is unenforced, for Events and the metric.
const (
	// ReasonFailurePolicyIgnore: requests pass when the webhook does not
	// answer.
	ReasonFailurePolicyIgnore = "FailurePolicyIgnore"
	// ReasonGuardMissing: a webhook, a policy or its binding does not exist, or a webhook refers to
	// another Service.
	ReasonGuardMissing = "GuardMissing"
	// ReasonCABundleStale: the caBundle does not verify the webhook's
	// certificate.
	ReasonCABundleStale = "CABundleStale"
	// ReasonNoEndpoints: no replica of the webhook is ready.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonNamespaceNotLabeled: a namespace lacks the label that the
	// webhook's selector requires.
	ReasonNamespaceNotLabeled = "NamespaceNotLabeled"
	// ReasonNamespaceNotMatched: the webhook does not match requests of the
	// namespace.
	ReasonNamespaceNotMatched = "NamespaceNotMatched"
	// ReasonPolicyNotDenying: a policy or binding does not deny.
	ReasonPolicyNotDenying = "PolicyNotDenying"
	// ReasonCRDDiffers: a CRD does not exist, or its schema lacks fields.
	ReasonCRDDiffers = "CRDDiffers"
	// ReasonStateUnreadable: the state could not be read.
	ReasonStateUnreadable = "StateUnreadable"
)

// Reasons returns all reasons in order.
func Reasons() []string {
	return []string{ReasonFailurePolicyIgnore, ReasonGuardMissing, ReasonCABundleStale, ReasonNoEndpoints, ReasonNamespaceNotLabeled, ReasonNamespaceNotMatched, ReasonPolicyNotDenying, ReasonCRDDiffers, ReasonStateUnreadable}
}

// Finding is an unenforced guard with the reason.
type Finding struct {
	Reason string
	// Object is the name of the webhook, policy, binding, CRD or Service.
	Object string
	// Namespace is the unprotected namespace; empty if the finding is not about
	// one.
	Namespace string
	Message   string
}

// Entry is the observed state of a required webhook.
type Entry struct {
	RequiredWebhook
	// Found is nil if the webhook does not exist. For a mutating webhook it has
	// the fields that both types share.
	Found *admissionregistrationv1.ValidatingWebhook
	// Namespaces are those whose requests must reach it.
	Namespaces []*corev1.Namespace
}

// Policy is the observed state of a ValidatingAdmissionPolicy or of a binding.
type Policy struct {
	Name    string
	Binding bool
	Exists  bool
	// Denies: its failurePolicy is that of its manifest or Fail, or the actions of the binding include Deny.
	Denies bool
}

// Input is the input of Decide.
type Input struct {
	Now time.Time
	// Service is the Service of the webhooks, and Host its name in the
	// certificate.
	Service, Host string
	Entries       []Entry
	Policies      []Policy
	Schemas       []Schema
	// Ready is the number of ready replicas.
	Ready int
	// Served are the certificates of the replicas that could be reached.
	Served []*x509.Certificate
	// Failed are the objects that could not be read.
	Failed []Failure
}

// Failure is an object that could not be read, and the error.
type Failure struct {
	Object string
	Err    error
}

// Decide returns the unenforced guards.
func Decide(in Input) []Finding {
	var found []Finding
	if in.Ready == 0 && !in.unread(in.Service) {
		found = append(found, Finding{Reason: ReasonNoEndpoints, Object: in.Service, Message: "no replica of the webhook is ready: requests that it matches are denied, or pass if failurePolicy is Ignore"})
	}
	if in.Ready > 0 && len(in.Served) == 0 {
		found = append(found, Finding{Reason: ReasonStateUnreadable, Object: in.Service, Message: "no ready replica of the webhook can be reached"})
	}
	for _, f := range in.Failed {
		found = append(found, Finding{Reason: ReasonStateUnreadable, Object: f.Object, Message: f.Err.Error()})
	}
	for _, e := range in.Entries {
		found = append(found, in.webhook(e)...)
	}
	for _, p := range in.Policies {
		found = append(found, policy(p)...)
	}
	for _, s := range in.Schemas {
		found = append(found, crd(s)...)
	}
	return found
}

// unread reports whether an object could not be read.
func (in Input) unread(object string) bool {
	return slices.ContainsFunc(in.Failed, func(f Failure) bool { return f.Object == object })
}

// webhook checks one webhook.
func (in Input) webhook(e Entry) []Finding {
	var found []Finding
	add := func(reason, message string) {
		found = append(found, Finding{Reason: reason, Object: e.Webhook, Message: message})
	}
	w := e.Found
	if w == nil {
		add(ReasonGuardMissing, "it is missing in configuration "+e.Configuration+": the API server does not call it")
		return found
	}
	if ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Ignore && !e.FailsOpen {
		add(ReasonFailurePolicyIgnore, "its failurePolicy is Ignore: requests pass when it does not answer")
	}
	if service := w.ClientConfig.Service; service == nil || service.Name != in.Service {
		add(ReasonGuardMissing, "it does not refer to Service "+in.Service)
	} else if err := in.trusts(w.ClientConfig.CABundle); err != nil {
		add(ReasonCABundleStale, err.Error())
	}
	for _, n := range e.Namespaces {
		f := Finding{Object: e.Webhook, Namespace: n.Name}
		switch {
		case e.NamespaceLabel != "" && n.Labels[e.NamespaceLabel] != e.Value:
			f.Reason = ReasonNamespaceNotLabeled
			f.Message = fmt.Sprintf("namespace %s has no label %s=%s: the webhook does not match its requests", n.Name, e.NamespaceLabel, e.Value)
		case !matches(w, n):
			f.Reason = ReasonNamespaceNotMatched
			f.Message = "the webhook does not match requests of namespace " + n.Name + ": it has no rules or an objectSelector, or its namespaceSelector does not select the namespace"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// trusts returns why the API server would reject a served certificate.
func (in Input) trusts(bundle []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("its caBundle has no certificate: a running webhook writes it within seconds; if it does not, read the log of Deployment %s", in.Service)
	}
	for _, c := range in.Served {
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, DNSName: in.Host, CurrentTime: in.Now}); err != nil {
			return fmt.Errorf("its caBundle does not verify the served certificate: %w", err)
		}
	}
	return nil
}

// matches reports whether the webhook matches requests of the namespace.
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

// policy checks a policy or a binding.
func policy(p Policy) []Finding {
	kind, problem := "ValidatingAdmissionPolicy", "its failurePolicy is Ignore: requests pass when it cannot be evaluated"
	if p.Binding {
		kind, problem = "ValidatingAdmissionPolicyBinding", "its validationActions do not include Deny: it only reports"
	}
	switch {
	case !p.Exists:
		return []Finding{{Reason: ReasonGuardMissing, Object: p.Name, Message: kind + " does not exist: nothing is denied"}}
	case !p.Denies:
		return []Finding{{Reason: ReasonPolicyNotDenying, Object: p.Name, Message: kind + ": " + problem}}
	}
	return nil
}
