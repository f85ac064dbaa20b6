package selfcheck

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
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
	if !key.mutating {
		config, err := r.admission.ValidatingWebhookConfigurations().Get(ctx, key.name, metav1.GetOptions{})
		if err != nil {
			return nil, unlessAbsent(err)
		}
		return config.Webhooks, nil
	}
	config, err := r.admission.MutatingWebhookConfigurations().Get(ctx, key.name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessAbsent(err)
	}
	for _, w := range config.Webhooks {
		all = append(all, admissionregistrationv1.ValidatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		})
	}
	return all, nil
}

// policies reads policies and bindings.
func policies(ctx context.Context, client admissionclient.AdmissionregistrationV1Interface, plan Plan) (all []Policy, failed []Failure) {
	for _, name := range plan.Policies {
		found, err := client.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
		if failed = appendFailure(failed, name, unlessAbsent(err)); unlessAbsent(err) != nil {
			continue
		}
		all = append(all, Policy{Name: name, Exists: err == nil, Denies: err == nil &&
			(ptr.Deref(found.Spec.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail || slices.Contains(plan.FailingOpen, name))})
	}
	for _, name := range plan.Bindings {
		found, err := client.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
		if failed = appendFailure(failed, name, unlessAbsent(err)); unlessAbsent(err) != nil {
			continue
		}
		all = append(all, Policy{Name: name, Binding: true, Exists: err == nil,
			Denies: err == nil && slices.Contains(found.Spec.ValidationActions, admissionregistrationv1.Deny)})
	}
	return all, failed
}

func unlessAbsent(err error) error {
	if err == nil || apierrs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read webhooks and policies: %w", err)
}
