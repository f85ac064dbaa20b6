package selfcheck

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	resource := "validatingwebhookconfigurations"
	get := func() ([]admissionregistrationv1.ValidatingWebhook, string, error) {
		config, err := r.admission.ValidatingWebhookConfigurations().Get(ctx, key.name, metav1.GetOptions{})
		if err != nil {
			return nil, "", err
		}
		return config.Webhooks, config.ResourceVersion, nil
	}
	if key.mutating {
		resource = "mutatingwebhookconfigurations"
		get = func() ([]admissionregistrationv1.ValidatingWebhook, string, error) {
			config, err := r.admission.MutatingWebhookConfigurations().Get(ctx, key.name, metav1.GetOptions{})
			if err != nil {
				return nil, "", err
			}
			return commonFields(config.Webhooks), config.ResourceVersion, nil
		}
	}
	all, err = readChanged(ctx, r.unchanged, admissionRef(resource, key.name), get)
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
	add := func(p Policy, resource string, get func() (denies bool, resourceVersion string, err error)) {
		denies, err := readChanged(ctx, r.unchanged, admissionRef(resource, p.Name), get)
		if failed = appendFailure(failed, p.Name, unlessAbsent(err)); unlessAbsent(err) == nil {
			p.Exists, p.Denies = err == nil, denies
			all = append(all, p)
		}
	}
	for _, name := range r.plan.Policies {
		add(Policy{Name: name}, "validatingadmissionpolicies", func() (bool, string, error) {
			found, err := r.admission.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			return ptr.Deref(found.Spec.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Fail ||
				slices.Contains(r.plan.FailingOpen, name), found.ResourceVersion, nil
		})
	}
	for _, name := range r.plan.Bindings {
		add(Policy{Name: name, Binding: true}, "validatingadmissionpolicybindings", func() (bool, string, error) {
			found, err := r.admission.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, "", err
			}
			return slices.Contains(found.Spec.ValidationActions, admissionregistrationv1.Deny), found.ResourceVersion, nil
		})
	}
	return all, failed
}

func unlessAbsent(err error) error {
	if err == nil || apierrs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read webhooks and policies: %w", err)
}
