package workloadkinds

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/change/releasecheck"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// MutatingWebhooks returns the mutating webhooks of the kinds that are not built in.
// They are derived from the webhook of Deployment. If all does not contain it, that is an error.
func MutatingWebhooks(all []admissionregistrationv1.MutatingWebhook, kinds []workload.Kind, access webhookpath.Access) ([]admissionregistrationv1.MutatingWebhook, error) {
	of, ok := webhook(all, mutatingName, suspend.MutatingWebhook(workload.Deployment))
	if !ok {
		return nil, missingError(suspend.MutatingWebhook(workload.Deployment))
	}
	var webhooks []admissionregistrationv1.MutatingWebhook
	for _, kind := range kinds[len(workload.BuiltIn()):] {
		derived := DeriveMutating(of, kind)
		access.Set(&derived.ClientConfig, derived.Name)
		webhooks = append(webhooks, derived)
	}
	return webhooks, nil
}

// ValidatingWebhooks returns the validating webhooks of the kinds that are not built
// in: one webhook per kind, and one release check for all of them.
func ValidatingWebhooks(all []admissionregistrationv1.ValidatingWebhook, kinds []workload.Kind, access webhookpath.Access) ([]admissionregistrationv1.ValidatingWebhook, error) {
	of, ok := webhook(all, validatingName, suspend.ValidatingWebhook(workload.Deployment))
	if !ok {
		return nil, missingError(suspend.ValidatingWebhook(workload.Deployment))
	}
	var webhooks []admissionregistrationv1.ValidatingWebhook
	for _, kind := range kinds[len(workload.BuiltIn()):] {
		derived := DeriveValidating(of, kind)
		access.Set(&derived.ClientConfig, derived.Name)
		webhooks = append(webhooks, derived)
	}
	if len(webhooks) == 0 {
		return nil, nil // without kinds, no release check is needed
	}
	// The release check may have been removed from the static configuration.
	if check, ok := webhook(all, validatingName, releasecheck.Webhook); ok {
		derived := DeriveReleaseCheck(check, kinds[len(workload.BuiltIn()):])
		access.Set(&derived.ClientConfig, derived.Name)
		webhooks = append(webhooks, derived)
	}
	return webhooks, nil
}

func missingError(name string) error {
	return fmt.Errorf("webhook %s, from which the webhooks of other kinds are derived, is not installed", name)
}

func mutatingName(w admissionregistrationv1.MutatingWebhook) string { return w.Name }

func validatingName(w admissionregistrationv1.ValidatingWebhook) string { return w.Name }

// webhook returns the webhook with a name.
func webhook[T any](all []T, nameOf func(T) string, name string) (T, bool) {
	for _, w := range all {
		if nameOf(w) == name {
			return w, true
		}
	}
	var none T
	return none, false
}
