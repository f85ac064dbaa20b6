package releasecheck

import (
	"errors"
	"fmt"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Result is what an answer counts as.
type Result struct {
	Outcome v1alpha1.Outcome
	// Reason is one of the Reason constants.
	Reason string
	// Message says it to a person.
	Message string
}

// ResultOf says what the server's answer counts as. retrieved says that the
// server confirmed a pass that came without a rule, which otherwise is how it
// answers when its check timed out or threw.
func ResultOf(a altershield.ReleaseAnswer, retrieved bool) Result {
	switch o := v1alpha1.ParseVerdict(a.Verdict); {
	case o == v1alpha1.OutcomeFail:
		return Result{o, v1alpha1.ReasonReleaseCheckFailed, or(a.Message, "the server failed it and gave no reason")}
	case o == v1alpha1.OutcomePass && (!a.Unjudged || retrieved):
		return Result{Outcome: o, Reason: v1alpha1.ReasonReleaseCheckPassed}
	case o == v1alpha1.OutcomePass:
		return none(v1alpha1.ReasonVerdictTimedOut, "the server's check did not end in time: "+or(a.Message, "it answered with a pass without rules"))
	case a.Verdict == "":
		return none(v1alpha1.ReasonNoVerdict, or(a.Message, "the server gave no verdict"))
	default:
		return none(v1alpha1.ReasonNoVerdict, fmt.Sprintf("the server said %q, which is neither pass nor fail: %s", a.Verdict, or(a.Message, "no reason given")))
	}
}

// ResultOfError says what an error instead of an answer counts as: no verdict.
func ResultOfError(err error) Result {
	var transport *altershield.TransportError
	var result *altershield.ResultError
	switch {
	case altershield.IsState(err):
		return none(v1alpha1.ReasonServerRejected, err.Error()+
			"; only scenes of generation 1 answer at once: see release-check-scene-key in ConfigMap "+altershield.ConfigMapName)
	case altershield.IsExists(err):
		return none(v1alpha1.ReasonServerRejected, err.Error()+"; the answer to an earlier question was lost")
	case errors.As(err, &result):
		return none(v1alpha1.ReasonServerRejected, err.Error())
	case errors.As(err, &transport) && transport.Kind == altershield.KindTimeout:
		return none(v1alpha1.ReasonVerdictTimedOut, err.Error())
	default:
		return none(v1alpha1.ReasonServerUnreachable, err.Error())
	}
}

func none(reason, message string) Result {
	return Result{v1alpha1.OutcomeNoVerdict, reason, message}
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// Enforcement is what becomes of a change about which there is an answer.
type Enforcement struct {
	Allowed bool
	// Reason is that of the ruling, and a metric label.
	Reason string
	// Reported: people and programs hear of it.
	Reported bool
}

// Enforce says what becomes of a change. In shadow everything is admitted, and
// told as if it had been refused.
func Enforce(outcome v1alpha1.Outcome, policy v1alpha1.NoVerdictPolicy, shadow bool) Enforcement {
	switch outcome {
	case v1alpha1.OutcomePass:
		return Enforcement{Allowed: true, Reason: v1alpha1.ReasonReleaseCheckPassed}
	case v1alpha1.OutcomeFail:
		return Enforcement{Allowed: shadow, Reason: v1alpha1.ReasonReleaseCheckFailed, Reported: true}
	default:
		return Enforcement{Allowed: shadow || policy != v1alpha1.NoVerdictFail, Reason: v1alpha1.ReasonReleaseUnchecked, Reported: true}
	}
}
