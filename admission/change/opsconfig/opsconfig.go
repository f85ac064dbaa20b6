// Package opsconfig trims the type and the content of OpsConfigInfo objects and validates
// them. It answers for mopsconfiginfo.kb.io and vopsconfiginfo.kb.io. The rules are in
// apis/change/v1alpha1.
package opsconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// Names of the webhooks.
const (
	TrimmingWebhook   = "mopsconfiginfo.kb.io"
	ValidatingWebhook = "vopsconfiginfo.kb.io"
)

// Decisions of this package; metric label values.
const (
	// Trimmed: the mutating webhook removed the spaces around type and content, if any.
	Trimmed = "Trimmed"
	// Invalid: the object was denied as invalid.
	Invalid = "Invalid"
)

// Trimmer is the webhook mopsconfiginfo.kb.io.
type Trimmer struct{}

var _ admission.Handler = Trimmer{}

// Admit implements admission.Handler.
func (Trimmer) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	patch, err := trim(ctx, req)
	if err != nil {
		// The validating webhook reports the error.
		logging.FromContext(ctx).Errorw("could not trim the OpsConfigInfo; it is admitted untrimmed", "error", err)
		return admission.Allow(admission.DecisionError)
	}
	return admission.AllowWith(Trimmed, patch)
}

func trim(ctx context.Context, req *admissionv1.AdmissionRequest) ([]byte, error) {
	before, err := read(req)
	if err != nil {
		return nil, err
	}
	after := before.DeepCopy()
	after.SetDefaults(ctx)
	if after.Spec == before.Spec {
		return nil, nil
	}
	var ops []jsonpatch.Operation
	if after.Spec.Type != before.Spec.Type {
		ops = append(ops, jsonpatch.NewOperation("replace", "/spec/type", after.Spec.Type))
	}
	if after.Spec.Content != before.Spec.Content {
		ops = append(ops, jsonpatch.NewOperation("replace", "/spec/content", after.Spec.Content))
	}
	return json.Marshal(ops)
}

// Validator is the webhook vopsconfiginfo.kb.io.
type Validator struct {
	// Lister has the settings of the cluster.
	Lister listers.OpsConfigInfoLister
}

var _ admission.Handler = Validator{}

// Admit implements admission.Handler.
func (v Validator) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	c, err := read(req)
	if err != nil {
		return admission.Fail(err)
	}
	if fieldErr := c.Validate(ctx); fieldErr != nil {
		return admission.Deny(Invalid, invalid(c, fieldErr))
	}
	answer := admission.Allow(admission.DecisionAdmitted)
	all, err := v.Lister.List(labels.Everything())
	if err != nil {
		return admission.Fail(fmt.Errorf("list OpsConfigInfo: %w", err))
	}
	is := func(e *v1alpha1.OpsConfigInfo) bool { return e.Namespace == c.Namespace && e.Name == c.Name }
	if e := settings.EffectiveInstead(c, append(slices.DeleteFunc(slices.Clone(all), is), c)); e != nil {
		answer = answer.Warn(fmt.Sprintf("this OpsConfigInfo has no effect: %s is older and has the same type %s: change %[1]s instead", e.Name, e.Spec.Type))
	}
	if c.Spec.Type == v1alpha1.ConfigJudges && c.Spec.Enable {
		names, _ := v1alpha1.ParseJudges(c.Spec.Content) // Validate has parsed it
		if keys := v1alpha1.OwnJudgesWarning(names); keys != "" {
			return answer.Warn(keys)
		}
	}
	return answer
}

// invalid returns a status like the API server's validation errors: kubectl prints the
// causes, which name the fields.
func invalid(c *v1alpha1.OpsConfigInfo, fieldErr *apis.FieldError) metav1.Status {
	var causes []metav1.StatusCause
	for _, e := range fieldErr.WrappedErrors() {
		message := e.Message
		if e.Details != "" {
			message += ": " + e.Details
		}
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: strings.Join(e.Paths, ", "), Message: message,
		})
	}
	return metav1.Status{
		Code:    http.StatusUnprocessableEntity,
		Reason:  metav1.StatusReasonInvalid,
		Message: fieldErr.Error(),
		Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "OpsConfigInfo", Name: c.Name, Causes: causes},
	}
}

func read(req *admissionv1.AdmissionRequest) (*v1alpha1.OpsConfigInfo, error) {
	c := &v1alpha1.OpsConfigInfo{}
	if err := json.Unmarshal(req.Object.Raw, c); err != nil {
		return nil, fmt.Errorf("decode OpsConfigInfo: %w", err)
	}
	return c, nil
}
