package change

import (
	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/opsconfig"
	"github.com/breakwater-dev/breakwater/admission/change/releasecheck"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/version"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
)

// handlers are the handlers of all change webhooks. The set of workload kinds may
// change at run time.
type handlers struct {
	kinds func() workloadkinds.State
	// mutating and validating are templates; find sets Kind on a copy.
	mutating   version.Handler
	validating suspend.Handler
	// settings is the handler that validates settings.
	settings opsconfig.Validator
	// check is the handler of the release check.
	check admission.Handler
}

// find returns the handler of a webhook by name.
func (h handlers) find(webhook string) (admission.Handler, bool) {
	switch webhook {
	case opsconfig.TrimmingWebhook:
		return opsconfig.Trimmer{}, true
	case opsconfig.ValidatingWebhook:
		return h.settings, true
	case releasecheck.Webhook:
		return h.check, true
	case workloadkinds.Webhook:
		return workloadkinds.Validator{}, true
	}
	for _, kind := range h.kinds().Kinds {
		switch webhook {
		case suspend.MutatingWebhook(kind):
			handler := h.mutating
			handler.Kind = kind
			return handler, true
		case suspend.ValidatingWebhook(kind):
			handler := h.validating
			handler.Kind = kind
			return handler, true
		}
	}
	return nil, false
}
