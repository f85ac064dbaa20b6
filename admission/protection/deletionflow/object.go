package deletionflow

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// ObjectWebhook is the webhook for PodDeletionFlowControls themselves.
const ObjectWebhook = "vpoddeletionflowcontrol.kb.io"

// DecisionInvalid means that the flow control is invalid.
const DecisionInvalid = "Invalid"

// ObjectHandler denies invalid flow controls and records who closed a breaker.
type ObjectHandler struct {
	Clock    clock.PassiveClock
	Recorder record.EventRecorder
}

var _ admission.Handler = ObjectHandler{}

// Admit implements admission.Handler.
func (o ObjectHandler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	after, before := &v1alpha1.PodDeletionFlowControl{}, &v1alpha1.PodDeletionFlowControl{}
	if err := json.Unmarshal(req.Object.Raw, after); err != nil {
		return admission.Fail(fmt.Errorf("decode PodDeletionFlowControl: %w", err))
	}
	if len(req.OldObject.Raw) > 0 {
		if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
			return admission.Fail(fmt.Errorf("decode PodDeletionFlowControl: %w", err))
		}
	}
	if err := after.Validate(ctx).Also(o.validateClosedTime(after)); err != nil {
		return admission.Deny(DecisionInvalid, invalid(after.Name, err))
	}
	closed := after.Annotations[v1alpha1.ClosedAnnotation]
	if closed != "" && closed != before.Annotations[v1alpha1.ClosedAnnotation] && !ptr.Deref(req.DryRun, false) {
		o.Recorder.Eventf(after, corev1.EventTypeNormal, v1alpha1.ReasonClosedManually,
			"%s asked to close the breaker: deletions until %s do not count", req.UserInfo.Username, closed)
	}
	return admission.Allow(admission.DecisionAdmitted)
}

// invalid names each field in a cause: for reason Invalid kubectl prints the causes only.
func invalid(name string, err *apis.FieldError) metav1.Status {
	s := metav1.Status{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("PodDeletionFlowControl %q is invalid: %s", name, err.Error()),
		Details: &metav1.StatusDetails{Name: name, Group: v1alpha1.GroupName, Kind: "PodDeletionFlowControl"},
	}
	for _, e := range err.WrappedErrors() {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: strings.Join(e.Paths, ", "), Message: e.Message + ": " + e.Details,
		})
	}
	return s
}

// validateClosedTime returns an error for a time in the future.
func (o ObjectHandler) validateClosedTime(f *v1alpha1.PodDeletionFlowControl) *apis.FieldError {
	closed := f.ClosedTime()
	if !closed.After(o.Clock.Now().Add(2 * deletionwindow.DefaultSkew)) {
		return nil
	}
	return &apis.FieldError{
		Message: fmt.Sprintf("%s is in the future", f.Annotations[v1alpha1.ClosedAnnotation]),
		Paths:   []string{"metadata.annotations[" + v1alpha1.ClosedAnnotation + "]"},
		Details: "write the present time, as printed by $(date -u +%FT%TZ); to allow more deletions from now on raise spec.limitRules",
	}
}
