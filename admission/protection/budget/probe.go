package budget

import (
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// The controller probes with a dry-run update of the budget. It reaches the webhook
// the same way as requests about pods: through the same webhook configuration, by
// the label of the same namespace. The answer is a warning.

func isProbe(req *admissionv1.AdmissionRequest) bool {
	return req.Resource.Group == v1alpha1.GroupName && req.Resource.Resource == "podunavailablebudgets"
}

func (g Guard) answerProbe(req *admissionv1.AdmissionRequest) admission.Answer {
	answer := admission.Allow(DecisionProbe)
	asked, err := decode[metav1.PartialObjectMetadata](req.Object)
	if err != nil || !ptr.Deref(req.DryRun, false) {
		return answer
	}
	known, err := g.Budgets.PodUnavailableBudgets(req.Namespace).Get(req.Name)
	if err == nil && known.UID == asked.UID && known.Generation >= asked.Generation {
		answer = answer.Warn(budget.ProbeAnswer{Probe: asked.Annotations[v1alpha1.ProbeAnnotation], Replica: g.Replica}.String())
	}
	return answer
}
