package selfcheck

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// RequiredWebhook is a webhook that must exist.
type RequiredWebhook struct {
	// Configuration is the name of its configuration; Mutating says which type it has.
	Configuration string
	Mutating      bool
	// Webhook is its name.
	Webhook string
	// FailsOpen: its manifest has failurePolicy Ignore on purpose, so requests are admitted without it.
	FailsOpen bool
	// Wanted reports whether it is required now; nil means always.
	Wanted func() (bool, error)
	// Namespaces returns those whose requests must reach it; nil for none.
	Namespaces func() ([]*corev1.Namespace, error)
	// NamespaceLabel and Value are the label that its selector requires; empty
	// for none.
	NamespaceLabel, Value string
}

// Plan lists the required guards.
type Plan struct {
	// Service is the Service of the webhooks in SystemNamespace. Its Deployment
	// has the same name.
	Service  string
	Webhooks []RequiredWebhook
	// Policies and Bindings are the names of the ValidatingAdmissionPolicies
	// and bindings that must deny.
	Policies, Bindings []string
	// FailingOpen are those of Policies whose manifest has failurePolicy Ignore on purpose.
	FailingOpen []string
	// CRDs are those whose objects the process reads and writes.
	CRDs []CRD
}

// entries reads the webhooks.
func (r *Reconciler) entries(ctx context.Context) (all []Entry, failed []Failure) {
	read := map[configurationKey][]admissionregistrationv1.ValidatingWebhook{}
	for _, g := range r.plan.Webhooks {
		if g.Wanted != nil {
			if wanted, err := g.Wanted(); err != nil || !wanted {
				failed = appendFailure(failed, g.Webhook, err)
				continue
			}
		}
		key := configurationKey{g.Configuration, g.Mutating}
		if _, known := read[key]; !known {
			webhooks, err := r.configuration(ctx, key)
			if err != nil {
				failed = appendFailure(failed, g.Webhook, err)
				continue
			}
			read[key] = webhooks
		}
		e := Entry{RequiredWebhook: g}
		if i := slices.IndexFunc(read[key], func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == g.Webhook }); i >= 0 {
			e.Found = &read[key][i]
		}
		if g.Namespaces != nil {
			var err error
			e.Namespaces, err = g.Namespaces()
			failed = appendFailure(failed, g.Webhook, err)
		}
		all = append(all, e)
	}
	return all, failed
}

func appendFailure(all []Failure, object string, err error) []Failure {
	if err != nil {
		all = append(all, Failure{object, err})
	}
	return all
}

// configurationKey identifies a webhook configuration.
type configurationKey struct {
	name     string
	mutating bool
}

// configuration returns the webhooks of a configuration; none if it does not
// exist.
func (r *Reconciler) configuration(ctx context.Context, key configurationKey) (all []admissionregistrationv1.ValidatingWebhook, err error) {
	if key.mutating {
		all, err = readChanged(ctx, r.unchanged, admissionRef("mutatingwebhookconfigurations", key.name), r.admission.MutatingWebhookConfigurations().Get,
			func(c *admissionregistrationv1.MutatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
				return commonFields(c.Webhooks)
			})
	} else {
		all, err = readChanged(ctx, r.unchanged, admissionRef("validatingwebhookconfigurations", key.name), r.admission.ValidatingWebhookConfigurations().Get,
			func(c *admissionregistrationv1.ValidatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
				return c.Webhooks
			})
	}
	return all, unlessAbsent(err)
}

// commonFields returns mutating webhooks with the fields that both types share.
func commonFields(mutating []admissionregistrationv1.MutatingWebhook) (all []admissionregistrationv1.ValidatingWebhook) {
	for _, w := range mutating {
		all = append(all, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		})
	}
	return all
}

// admissionRef names an object of admissionregistration.k8s.io.
func admissionRef(resource, name string) guardRef {
	return guardRef{admissionregistrationv1.SchemeGroupVersion.WithResource(resource), name}
}

// policies reads policies and bindings.
func (r *Reconciler) policies(ctx context.Context) (all []Policy, failed []Failure) {
	add := func(p Policy, denies bool, err error) {
		if failed = appendFailure(failed, p.Name, unlessAbsent(err)); unlessAbsent(err) == nil {
			p.Exists, p.Denies = err == nil, denies
			all = append(all, p)
		}
	}
	for _, name := range r.plan.Policies {
		denies, err := readChanged(ctx, r.unchanged, admissionRef("validatingadmissionpolicies", name), r.admission.ValidatingAdmissionPolicies().Get,
			func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
				return ptr.Deref(p.Spec.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail || slices.Contains(r.plan.FailingOpen, name)
			})
		add(Policy{Name: name}, denies, err)
	}
	for _, name := range r.plan.Bindings {
		denies, err := readChanged(ctx, r.unchanged, admissionRef("validatingadmissionpolicybindings", name), r.admission.ValidatingAdmissionPolicyBindings().Get,
			func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
				return slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny)
			})
		add(Policy{Name: name, Binding: true}, denies, err)
	}
	return all, failed
}

func unlessAbsent(err error) error {
	if err == nil || apierrs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read webhooks and policies: %w", err)
}
