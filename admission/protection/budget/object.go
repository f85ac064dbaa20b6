package budget

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"unicode"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// ObjectWebhook is the webhook for PodUnavailableBudgets themselves.
const ObjectWebhook = "vpodunavailablebudget.kb.io"

// DecisionInvalid means that the budget is invalid.
const DecisionInvalid = "Invalid"

// ObjectHandler denies invalid budgets. It labels the namespace of a valid budget, so that
// requests about pods of the namespace reach Guard.
type ObjectHandler struct {
	Namespaces corev1client.NamespaceInterface
}

var _ admission.Handler = ObjectHandler{}

// Admit implements admission.Handler.
func (o ObjectHandler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	b, err := decode[v1alpha1.PodUnavailableBudget](req.Object)
	if err != nil {
		return admission.Fail(err)
	}
	if problems := append(validate(b.Spec), ignoredAnnotations(b.Annotations)...); len(problems) > 0 {
		return admission.Deny(DecisionInvalid, invalid(b, problems))
	}
	answer := admission.Allow(admission.DecisionAdmitted)
	if ref := b.Spec.TargetRef; ref != nil {
		if first, _ := utf8.DecodeRuneInString(ref.Kind); !unicode.IsUpper(first) {
			answer = answer.Warn(fmt.Sprintf("the budget may cover no pod: spec.targetRef.kind %q does not begin with a capital letter, as Deployment does", ref.Kind))
		}
	}
	if changev1alpha1.ExcludedNamespace(req.Namespace) {
		return answer.Warn("the budget has no effect: budgets do not apply in namespace " + req.Namespace + ", because the cluster needs its pods to recover")
	}
	if ptr.Deref(req.DryRun, false) {
		return answer
	}
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	if err := LabelNamespace(ctx, o.Namespaces, req.Namespace); err != nil {
		return admission.Fail(err)
	}
	return answer
}

// LabelNamespace labels the namespace, so that requests about its pods reach the
// webhook.
func LabelNamespace(ctx context.Context, namespaces corev1client.NamespaceInterface, name string) error {
	n, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}
	if n.Labels[v1alpha1.HasBudgetLabel] == v1alpha1.HasBudgetValue {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.HasBudgetLabel, v1alpha1.HasBudgetValue)
	if _, err := namespaces.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("label namespace %s: %w", name, err)
	}
	return nil
}

// validate finds what the schema of the CRD does not: invalid label keys and values, and kinds
// of Knative Serving that are no Service.
func validate(spec v1alpha1.PodUnavailableBudgetSpec) field.ErrorList {
	path := field.NewPath("spec")
	if ref := spec.TargetRef; ref != nil && budget.GroupOf(ref.APIVersion) == workload.KnativeService.Group && ref.Kind != workload.KnativeService.Kind {
		return field.ErrorList{field.Invalid(path.Child("targetRef", "kind"), ref.Kind,
			fmt.Sprintf("of Knative Serving only a %s can be the target: write kind: %[1]s and its name; the budget protects the Revisions that have traffic", workload.KnativeService.Kind))}
	}
	if spec.Selector == nil {
		return nil
	}
	var problems field.ErrorList
	for i, e := range spec.Selector.MatchExpressions {
		if e.Value != "" {
			problems = append(problems, field.Required(path.Child("selector", "matchExpressions").Index(i).Child("values"),
				fmt.Sprintf("the field is called values and is a list: write values: [%s]", e.Value)))
		}
	}
	problems = append(problems, metav1validation.ValidateLabelSelector(spec.Selector.LabelSelector(),
		metav1validation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
	return slices.Clip(problems)
}

// Annotations of OpenKruise's PodUnavailableBudget that Breakwater does not read.
const (
	operationsAnnotation = "kruise.io/pub-protect-operations"
	replicasAnnotation   = "pub.kruise.io/protect-total-replicas"
)

// ignoredAnnotations returns an error for each annotation that changes a budget in
// OpenKruise and has no effect here.
func ignoredAnnotations(annotations map[string]string) field.ErrorList {
	path := field.NewPath("metadata", "annotations")
	var problems field.ErrorList
	if value, ok := annotations[operationsAnnotation]; ok {
		problems = append(problems, field.Forbidden(path.Key(operationsAnnotation),
			fmt.Sprintf("the annotation has no effect: remove it, and set spec.protectOperations: [%s]", value)))
	}
	if _, ok := annotations[replicasAnnotation]; ok {
		problems = append(problems, field.Forbidden(path.Key(replicasAnnotation),
			"the annotation has no effect: remove it. The replicas of the pods' owners count; for pods without an owner set spec.minAvailable to a number"))
	}
	return problems
}

func invalid(b *v1alpha1.PodUnavailableBudget, problems field.ErrorList) metav1.Status {
	status := metav1.Status{
		Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("PodUnavailableBudget %q is invalid: %s", b.Name, problems.ToAggregate()),
		Details: &metav1.StatusDetails{Name: b.Name, Group: v1alpha1.GroupName, Kind: "PodUnavailableBudget"},
	}
	for _, p := range problems {
		status.Details.Causes = append(status.Details.Causes,
			metav1.StatusCause{Type: metav1.CauseType(p.Type), Field: p.Field, Message: p.ErrorBody()})
	}
	return status
}
