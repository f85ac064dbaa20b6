package deletion

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/cascade"
)

// DecisionCascadingProtection means that flow control does not count the deletion of a namespace:
// the webhook of cascading deletion denies it, unless the namespace has no pods.
const DecisionCascadingProtection = "CascadingProtection"

// NamespaceHandler decides the requests of the webhook of flow control for namespaces. The API server
// calls the webhook of cascading deletion in parallel, so without NamespaceHandler flow control would
// count all pods of a namespace whose deletion is denied.
type NamespaceHandler struct {
	FlowControl admission.Handler
	// CascadingDenies reports whether the API server asks the webhook of cascading deletion, and
	// denies a request without its answer.
	CascadingDenies func() bool
}

var _ admission.Handler = NamespaceHandler{}

// Admit implements admission.Handler.
func (h NamespaceHandler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	var namespace metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.OldObject.Raw, &namespace); err == nil && cascade.Enforced(&namespace) && h.CascadingDenies() {
		return admission.Allow(DecisionCascadingProtection)
	}
	return h.FlowControl.Admit(ctx, req)
}
