package change

import (
	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/opsconfig"
	"github.com/breakwater-dev/breakwater/admission/change/releasecheck"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/version"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
)

// handlers are all of our webhooks, those of workloads for the kinds that are
// in force at the moment.
type handlers struct {
	kinds func() workloadkinds.State
	// stamper and gate are models: each kind has its own.
	stamper version.Handler
	gate    suspend.Handler
	// check asks the server about releases.
	check admission.Handler
}

// find returns the handler of a webhook.
func (h handlers) find(webhook string) (admission.Handler, bool) {
	switch webhook {
	case opsconfig.DefaultingWebhook:
		return opsconfig.Defaulter{}, true
	case opsconfig.ValidatingWebhook:
		return opsconfig.Validator{}, true
	case releasecheck.Webhook:
		return h.check, true
	case workloadkinds.Webhook:
		return workloadkinds.Validator{}, true
	}
	for _, kind := range h.kinds().Kinds {
		switch webhook {
		case suspend.MutatingWebhook(kind):
			stamper := h.stamper
			stamper.Kind = kind
			return stamper, true
		case suspend.ValidatingWebhook(kind):
			gate := h.gate
			gate.Kind = kind
			return gate, true
		}
	}
	return nil, false
}
