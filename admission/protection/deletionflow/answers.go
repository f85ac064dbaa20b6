package deletionflow

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
)

// Decisions, a label of the admission metric. The reasons of internal/deletionflow
// for not counting a request are decisions too, and those of admission.DecisionOf.
const (
	// DecisionCounted: the request was counted (a dry run: would be counted) and allowed.
	DecisionCounted = "Counted"
	// DecisionDenied: the request exceeds a limit, or a rule of the flow control is invalid.
	DecisionDenied = "Denied"
	// DecisionShadow: the request was allowed in shadow mode only: it exceeds a limit, or a rule
	// of the flow control is invalid.
	DecisionShadow = "Shadow"
	// DecisionUncounted: the request was allowed, because only flow controls in shadow mode could not count it.
	DecisionUncounted = "Uncounted"
	// DecisionNoFlowControl: there is no flow control.
	DecisionNoFlowControl = "NoFlowControl"
	// DecisionPodNotFound: the pod does not exist, or the eviction is of an earlier pod of its name.
	DecisionPodNotFound = "PodNotFound"
	// DecisionDisruptionBudget: the API server will refuse the eviction because of PodDisruptionBudgets.
	DecisionDisruptionBudget = "DisruptionBudget"
	// DecisionDeniedClockSkew: the request was denied, because the clock of this
	// replica differs from the API server's.
	DecisionDeniedClockSkew = "DeniedClockSkew"
)

// Causes in the details of a denial.
const (
	causeFlowControl metav1.CauseType = "PodDeletionFlowControl"
	causeRoomTime    metav1.CauseType = "RoomTime"
	causeWayOut      metav1.CauseType = "WayOut"
)

// denial returns the answer that denies a request. It has no Retry-After, because
// client-go would block the worker of a controller for that time.
func denial(r *request, name string, d deletionflow.Decision, now time.Time) admission.Answer {
	if d.Err != nil {
		message := fmt.Sprintf("%s of %s is denied: PodDeletionFlowControl %s is invalid, so every deletion that counts is denied: %v. "+
			"Way out: kubectl edit pdfc %s", verb(r), r.subject, name, d.Err, name)
		return admission.Deny(DecisionDenied, status(r, name, message, metav1.StatusCause{Type: causeFlowControl, Message: d.Err.Error()}))
	}
	used := fmt.Sprintf("%d of %d in %s", d.Exceeded.Used, d.Exceeded.Rule.Limit, d.Exceeded.Rule.Text)
	what := "is one more"
	if r.OfNamespace {
		what = fmt.Sprintf("deletes %d pods", d.CountsAs)
	}
	when := fmt.Sprintf("the limit never allows %d at once", d.CountsAs)
	causes := []metav1.StatusCause{{Type: causeFlowControl, Field: "spec.limitRules", Message: used}}
	if !d.RoomTime.IsZero() {
		at := d.RoomTime.UTC().Format(time.RFC3339)
		when = fmt.Sprintf("deletions are allowed again at %s (in %s)", at, d.RoomTime.Sub(now).Round(time.Second))
		causes = append(causes, metav1.StatusCause{Type: causeRoomTime, Field: "status.roomTime", Message: at})
	}
	ways := waysOut(r, name, !d.RoomTime.IsZero())
	for _, way := range ways {
		causes = append(causes, metav1.StatusCause{Type: causeWayOut, Message: way})
	}
	message := fmt.Sprintf("%s of %s is denied by PodDeletionFlowControl %s: %d deletions were counted in %s (limit %d), and this %s; %s. Ways out: %s",
		verb(r), r.subject, name, d.Exceeded.Used, d.Exceeded.Rule.Text, d.Exceeded.Rule.Limit, what, when, strings.Join(ways, "; or "))
	return admission.Deny(DecisionDenied, status(r, name, message, causes...))
}

func waysOut(r *request, name string, passes bool) (ways []string) {
	if passes {
		ways = append(ways, "wait until then")
	}
	ways = append(ways, "raise the limit, which takes effect at once (kubectl edit pdfc "+name+")")
	if passes {
		ways = append(ways, fmt.Sprintf("stop counting earlier deletions (kubectl annotate pdfc %s --overwrite %s=$(date -u +%%FT%%TZ))",
			name, v1alpha1.ClosedAnnotation))
	}
	if r.OfNamespace {
		ways = append(ways, "first delete or scale down the workloads of the namespace in steps")
	}
	return ways
}

func verb(r *request) string {
	if r.Eviction {
		return "eviction"
	}
	return "deletion"
}

// status returns Forbidden for a deletion, and for an eviction TooManyRequests, on
// which kubectl drain waits and retries.
func status(r *request, name, message string, causes ...metav1.StatusCause) metav1.Status {
	s := metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Name: name, Group: v1alpha1.GroupName, Kind: "poddeletionflowcontrols", Causes: causes},
	}
	if r.Eviction {
		s.Code, s.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	}
	return s
}

// undecided denies a request that could not be decided, and asks to try again.
func undecided(decision string, err error) admission.Answer {
	return admission.Deny(decision, metav1.Status{
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "PodDeletionFlowControls could not decide this request, so it is denied: try again. " + err.Error(),
		Details: &metav1.StatusDetails{
			Group: v1alpha1.GroupName, Kind: "poddeletionflowcontrols", RetryAfterSeconds: 1,
			Causes: []metav1.StatusCause{{Type: admission.CauseUndecided, Message: err.Error()}},
		},
	})
}

// unanswered answers a request that could not be decided. It is allowed if all flow controls are in shadow mode, which denies
// nothing.
func unanswered(decision string, err error, flows []*v1alpha1.PodDeletionFlowControl) admission.Answer {
	if slices.ContainsFunc(flows, func(f *v1alpha1.PodDeletionFlowControl) bool { return !f.Spec.Shadow }) {
		return undecided(decision, err)
	}
	return uncounted(admission.Allow(DecisionUncounted), err)
}

// uncounted returns the answer with a warning: a flow control in shadow mode could not count the request.
func uncounted(answer admission.Answer, err error) admission.Answer {
	if answer.Decision != DecisionShadow {
		answer.Decision = DecisionUncounted
	}
	return answer.Warn("allowed in shadow mode, and not counted: " + err.Error())
}
