package workloadkinds

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/change/releasecheck"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// MutatingWebhooks returns the mutating webhooks of the kinds that are not built in:
// twins of the one of Deployments among all.
func MutatingWebhooks(all []admissionregistrationv1.MutatingWebhook, kinds []workload.Kind, bundle []byte) ([]admissionregistrationv1.MutatingWebhook, error) {
	of, ok := webhook(all, mutatingName, suspend.MutatingWebhook(workload.Deployment))
	if !ok {
		return nil, missing(suspend.MutatingWebhook(workload.Deployment))
	}
	var twins []admissionregistrationv1.MutatingWebhook
	for _, kind := range kinds[len(workload.BuiltIn()):] {
		twin := DeriveMutating(of, kind)
		twin.ClientConfig.CABundle = bundle
		twins = append(twins, twin)
	}
	return twins, nil
}

// ValidatingWebhooks returns the validating webhooks of the kinds that are not built
// in: a gate for each, and one release check for all.
func ValidatingWebhooks(all []admissionregistrationv1.ValidatingWebhook, kinds []workload.Kind, bundle []byte) ([]admissionregistrationv1.ValidatingWebhook, error) {
	of, ok := webhook(all, validatingName, suspend.ValidatingWebhook(workload.Deployment))
	if !ok {
		return nil, missing(suspend.ValidatingWebhook(workload.Deployment))
	}
	var twins []admissionregistrationv1.ValidatingWebhook
	for _, kind := range kinds[len(workload.BuiltIn()):] {
		twin := DeriveValidating(of, kind)
		twin.ClientConfig.CABundle = bundle
		twins = append(twins, twin)
	}
	if len(twins) == 0 {
		return nil, nil // there is nothing to ask about either
	}
	// Who took the release check out of the static configuration wants none.
	if check, ok := webhook(all, validatingName, releasecheck.Webhook); ok {
		twin := DeriveReleaseCheck(check, kinds[len(workload.BuiltIn()):])
		twin.ClientConfig.CABundle = bundle
		twins = append(twins, twin)
	}
	return twins, nil
}

func missing(name string) error {
	return fmt.Errorf("webhook %s, which those of other kinds take after, is not installed", name)
}

func mutatingName(w admissionregistrationv1.MutatingWebhook) string { return w.Name }

func validatingName(w admissionregistrationv1.ValidatingWebhook) string { return w.Name }

// webhook returns that of a name.
func webhook[T any](all []T, nameOf func(T) string, name string) (T, bool) {
	for _, w := range all {
		if nameOf(w) == name {
			return w, true
		}
	}
	var none T
	return none, false
}
