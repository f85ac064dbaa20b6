package budget

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// Decisions, a label of the admission metric. Those of admission.DecisionOf are decisions too.
const (
	// DecisionNoBudget: the namespace has no budget.
	DecisionNoBudget = "NoBudget"
	// DecisionNamespaceTerminating: the namespace of the deleted object terminates.
	DecisionNamespaceTerminating = "NamespaceTerminating"
	// DecisionNotCharged: no budget was charged: for example, because none covers the pods,
	// or because none of them is available.
	DecisionNotCharged = "NotCharged"
	// DecisionCharged: the request was charged (a dry run: would be charged) and allowed.
	DecisionCharged = "Charged"
	// DecisionRepeated: the same request was allowed before.
	DecisionRepeated = "Repeated"
	// DecisionDenied: the request does not fit into a budget.
	DecisionDenied = "Denied"
	// DecisionShadow: a budget in shadow mode would have denied the request, for any reason.
	DecisionShadow = "Shadow"
	// DecisionUnsynced: the budget is not synced with its spec yet.
	DecisionUnsynced = "Unsynced"
	// DecisionStale: the controller has not renewed a Lease for too long, or has just acquired it or
	// renewed it after an outage, so its numbers may be old.
	DecisionStale = "Stale"
	// DecisionDisruptionBudget: the API server will refuse the eviction because of PodDisruptionBudgets.
	DecisionDisruptionBudget = "DisruptionBudget"
	// DecisionProbe: the controller probed whether this replica knows a budget.
	DecisionProbe = "Probe"
)

// Causes in the details of a denial.
const (
	causeBudget   metav1.CauseType = "PodUnavailableBudget"
	causeUnsynced metav1.CauseType = "PodUnavailableBudgetNotComputed"
	causeStale    metav1.CauseType = "PodUnavailableBudgetStale"
)

// denial returns the answer that denies a request. It has no Retry-After, because
// client-go would block the worker of a controller for that time. An eviction gets
// TooManyRequests, on which kubectl drain waits and retries. unknownSelector says why the pod may leave
// the budget; empty if it leaves, or stays.
func denial(a *Action, b *v1alpha1.PodUnavailableBudget, d budget.Decision, unknownSelector string) admission.Answer {
	state := fmt.Sprintf("%d of %d pods are available, and %d must be available", d.Current, d.Total, d.Desired)
	if d.EarlierCharges > 0 {
		state += fmt.Sprintf("; allowed requests in progress: %d", d.EarlierCharges)
	}
	if d.UnknownReplicas != "" {
		state = d.UnknownReplicas
	}
	wait, allAvailable := "", d.UnknownReplicas == "" && d.Total > 0 && d.Current >= d.Total
	switch { // if all pods are available and no request is in progress, waiting does not help
	case !allAvailable:
		wait = "wait until more pods are Ready"
	case d.EarlierCharges > 0:
		wait = "wait until the requests in progress have taken effect"
	}
	if wait != "" {
		wait += fmt.Sprintf(" (kubectl -n %s get pub %s); or ", b.Namespace, b.Name)
	}
	leaves := ""
	if unknownSelector != "" {
		leaves = "Any change of the pod's labels or controller counts as leaving the budget, because " + unknownSelector + ". "
	}
	message := fmt.Sprintf("%s of %s is denied by PodUnavailableBudget %s: the request %s, and the budget allows %d now (%s). %s"+
		"Ways out: %s%s; or set spec.shadow of the budget to true, which only reports",
		a.Operation, a.Subject, b.Name, effectOf(d), d.Allowed, state, leaves, wait, remedyOf(b))
	return admission.Deny(DecisionDenied, withDetails(a, b.Name, message, metav1.StatusCause{
		Type: causeBudget, Field: "status.unavailableAllowed", Message: fmt.Sprintf("%d allowed, %d needed, %s", d.Allowed, max(d.Needed, 1), state),
	}))
}

// effectOf says in a denial what the request would do. Without an available pod it is
// denied only because of protectNotReady.
func effectOf(d budget.Decision) string {
	switch d.Needed {
	case 0:
		return "affects only pods that are not available, which spec.protectNotReady protects, too"
	case 1:
		return "makes 1 available pod unavailable"
	default:
		return fmt.Sprintf("makes %d available pods unavailable", d.Needed)
	}
}

func remedyOf(b *v1alpha1.PodUnavailableBudget) string {
	if b.Spec.MinAvailable != nil {
		return "lower spec.minAvailable of the budget (now " + b.Spec.MinAvailable.String() + ")"
	}
	if b.Spec.MaxUnavailable != nil {
		return "raise spec.maxUnavailable of the budget (now " + b.Spec.MaxUnavailable.String() + ")"
	}
	return "raise spec.maxUnavailable of the budget"
}

func withDetails(a *Action, name, message string, cause metav1.StatusCause) metav1.Status {
	status := metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{
			Name: name, Group: v1alpha1.GroupName, Kind: "podunavailablebudgets", Causes: []metav1.StatusCause{cause},
		},
	}
	if a.Operation == v1alpha1.OperationEvict {
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	}
	return status
}

// unsynced denies a request until the controller has computed the budget.
func unsynced(b *v1alpha1.PodUnavailableBudget) admission.Answer {
	message := fmt.Sprintf("PodUnavailableBudget %s is not synced with its generation %d yet, so requests about its pods are denied: try again. "+
		"If this lasts, check Deployment protection-controller", b.Name, b.Generation)
	return tryAgain(1, DecisionUnsynced, b.Name, message, metav1.StatusCause{Type: causeUnsynced, Field: "status.observedGeneration", Message: message})
}

// stale denies a request, because pods may have been lost since the numbers of the budget
// were computed. Another replica may know better: this one may not receive the renewals of the Lease.
// It has no Retry-After, as denial: the outage of a controller may last.
func stale(b *v1alpha1.PodUnavailableBudget, reason string) admission.Answer {
	message := fmt.Sprintf("the numbers of PodUnavailableBudget %s may be old (%s), so requests about its pods are denied: try again. "+
		"Ways out: check Deployment protection-controller; or set spec.shadow of the budget to true, which only reports", b.Name, reason)
	return tryAgain(0, DecisionStale, b.Name, message, metav1.StatusCause{Type: causeStale, Field: "status.unavailableAllowed", Message: reason},
		metav1.StatusCause{Type: admission.CauseUndecided, Message: reason})
}

// undecided denies a request that could not be decided, and asks to try again.
func undecided(b *v1alpha1.PodUnavailableBudget, err error) admission.Answer {
	name := ""
	if b != nil {
		name = b.Name
	}
	message := "PodUnavailableBudgets could not decide this request, so it is denied: try again. " + err.Error()
	return tryAgain(1, admission.DecisionOf(err), name, message, metav1.StatusCause{Type: admission.CauseUndecided, Message: err.Error()})
}

// tryAgain denies a request. retryAfter is the Retry-After in seconds; 0 for none.
func tryAgain(retryAfter int32, decision, name, message string, causes ...metav1.StatusCause) admission.Answer {
	return admission.Deny(decision, metav1.Status{
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: message,
		Details: &metav1.StatusDetails{
			Name: name, Group: v1alpha1.GroupName, Kind: "podunavailablebudgets", RetryAfterSeconds: retryAfter, Causes: causes,
		},
	})
}
