package deletionflow

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// Decisions: what answers are counted as. Why something was not counted is a
// decision too: see internal/deletionflow.
const (
	// DecisionCounted: it was counted and let through.
	DecisionCounted = "Counted"
	// DecisionRefused: there was no room.
	DecisionDenied = "Denied"
	// DecisionShadow: there was no room, and it was let through in shadow mode.
	DecisionShadow = "Shadow"
	// DecisionNone: no flow control is in charge.
	DecisionNoFlowControl = "NoFlowControl"
	// DecisionGone: there is no such pod.
	DecisionPodNotFound = "PodNotFound"
	// DecisionDisruption: a PodDisruptionBudget will refuse the eviction.
	DecisionDisruptionBudget = "DisruptionBudget"
	// DecisionClock: the clock of this replica is wrong.
	DecisionClockOff = "ClockOff"
	// DecisionLate: it could not be decided in time.
	DecisionLate = "Late"
)

// Causes in the details of a refusal.
const (
	causeFull      metav1.CauseType = "PodDeletionFlowControl"
	causeRoomTime  metav1.CauseType = "RoomTime"
	causeWayOut    metav1.CauseType = "WayOut"
	causeUndecided metav1.CauseType = "Undecided"
)

// refused says no. Neither answer carries a time to wait: client-go would park
// the worker of a controller for as long.
func denial(a *request, name string, v deletionflow.Verdict, now time.Time) admission.Answer {
	if v.Err != nil {
		message := fmt.Sprintf("%s of %s is refused: PodDeletionFlowControl %s does not read, so nothing is let through: %v. "+
			"Way out: kubectl edit pdfc %s", verb(a), a.subject, name, v.Err, name)
		return admission.Deny(DecisionDenied, status(a, name, message, metav1.StatusCause{Type: causeFull, Message: v.Err.Error()}))
	}
	used := fmt.Sprintf("%d of %d in %s", v.Exceeded.Used, v.Exceeded.Rule.Limit, v.Exceeded.Rule.Text)
	what := "is one more"
	if a.OfNamespace {
		what = fmt.Sprintf("takes %d pods with it", v.Counted)
	}
	when := fmt.Sprintf("there is never room for %d until the limit is raised", v.Counted)
	causes := []metav1.StatusCause{{Type: causeFull, Field: "spec.limitRules", Message: used}}
	if !v.RoomTime.IsZero() {
		at := v.RoomTime.UTC().Format(time.RFC3339)
		when = fmt.Sprintf("there is room again at %s (in %s)", at, v.RoomTime.Sub(now).Round(time.Second))
		causes = append(causes, metav1.StatusCause{Type: causeRoomTime, Field: "status.roomTime", Message: at})
	}
	ways := waysOut(a, name, !v.RoomTime.IsZero())
	for _, way := range ways {
		causes = append(causes, metav1.StatusCause{Type: causeWayOut, Message: way})
	}
	message := fmt.Sprintf("%s of %s is refused by PodDeletionFlowControl %s: %s are deleted already and this %s; %s. Ways out: %s",
		verb(a), a.subject, name, used, what, when, strings.Join(ways, "; or "))
	return admission.Deny(DecisionDenied, status(a, name, message, causes...))
}

func waysOut(a *request, name string, passes bool) (ways []string) {
	if passes {
		ways = append(ways, "wait until then")
	}
	ways = append(ways, "raise the limit, which counts at once (kubectl edit pdfc "+name+")")
	if passes {
		ways = append(ways, fmt.Sprintf("let what was deleted so far count no more (kubectl annotate pdfc %s --overwrite %s=$(date -u +%%FT%%TZ))",
			name, v1alpha1.ClosedAnnotation))
	}
	if a.OfNamespace {
		ways = append(ways, "delete or scale down what is in the namespace first, little by little")
	}
	return ways
}

func verb(a *request) string {
	if a.Eviction {
		return "eviction"
	}
	return "deletion"
}

// status is Forbidden for a deletion. An eviction is answered as kubectl drain
// expects it: then it waits.
func status(a *request, name, message string, causes ...metav1.StatusCause) metav1.Status {
	s := metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Name: name, Group: v1alpha1.GroupName, Kind: "poddeletionflowcontrols", Causes: causes},
	}
	if a.Eviction {
		s.Code, s.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	}
	return s
}

// undecided asks to try again: it could not be found out, or not in time.
func undecided(decision string, err error) admission.Answer {
	if errors.Is(err, groupcommit.ErrDeadline) || errors.Is(err, groupcommit.ErrQueueFull) {
		decision = DecisionLate
	}
	return admission.Deny(decision, metav1.Status{
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "it could not be decided whether a PodDeletionFlowControl lets this through, so it is refused: try again. " + err.Error(),
		Details: &metav1.StatusDetails{
			Group: v1alpha1.GroupName, Kind: "poddeletionflowcontrols", RetryAfterSeconds: 1,
			Causes: []metav1.StatusCause{{Type: causeUndecided, Message: err.Error()}},
		},
	})
}
