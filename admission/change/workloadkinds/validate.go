package workloadkinds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Webhook is the name of the webhook that validates ConfigMap config-workloads.
const Webhook = "vconfigworkloads.kb.io"

// Invalid is the decision about an invalid ConfigMap; a metric label value.
const Invalid = "Invalid"

// Validator is the webhook vconfigworkloads.kb.io.
type Validator struct{}

var _ admission.Handler = Validator{}

// Admit implements admission.Handler.
func (Validator) Admit(_ context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	var cm corev1.ConfigMap
	if err := json.Unmarshal(req.Object.Raw, &cm); err != nil {
		return admission.Fail(fmt.Errorf("decode ConfigMap: %w", err))
	}
	if cm.Name != workload.ConfigMapName {
		return admission.Allow(admission.DecisionAdmitted)
	}
	if _, err := workload.Kinds(cm.Data); err != nil {
		return admission.Deny(Invalid, metav1.Status{
			// For 422, tools with an option to force would delete the ConfigMap.
			Code:    http.StatusForbidden,
			Reason:  metav1.StatusReasonForbidden,
			Message: "data." + err.Error(),
			Details: &metav1.StatusDetails{Kind: "ConfigMap", Name: cm.Name, Causes: []metav1.StatusCause{{
				Type: metav1.CauseTypeFieldValueInvalid, Field: "data." + workload.KindsKey, Message: err.Error(),
			}}},
		})
	}
	return admission.Allow(admission.DecisionAdmitted)
}
