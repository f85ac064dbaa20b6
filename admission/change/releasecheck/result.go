package releasecheck

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Result is the evaluated answer of the server.
type Result struct {
	Outcome v1alpha1.Outcome
	// Reason is one of the Reason constants.
	Reason string
	// Message explains the outcome.
	Message string
}

// ResultOf evaluates the server's answer. retrieved reports that retrieve confirmed a pass
// without rules. Otherwise the server's check may still run, or it timed out or crashed, or
// the call of retrieve failed.
func ResultOf(a altershield.ReleaseCheckAnswer, retrieved bool) Result {
	switch o := v1alpha1.ParseVerdict(a.Verdict); {
	case o == v1alpha1.OutcomeFail:
		return Result{o, v1alpha1.ReasonReleaseCheckFailed, cmp.Or(a.Message, "the server failed it and gave no reason")}
	case o == v1alpha1.OutcomePass && (!a.Unconfirmed || retrieved):
		return Result{Outcome: o, Reason: v1alpha1.ReasonReleaseCheckPassed}
	case o == v1alpha1.OutcomePass:
		return noVerdict(v1alpha1.ReasonVerdictTimedOut, strings.TrimSuffix("the server returned a pass without rules, and retrieve did not confirm it in time: "+a.Message, ": "))
	case a.Verdict == "":
		return noVerdict(v1alpha1.ReasonNoVerdict, cmp.Or(a.Message, "the server gave no verdict"))
	default:
		return noVerdict(v1alpha1.ReasonNoVerdict, fmt.Sprintf("the server returned verdict %q, which is neither pass nor fail: %s", a.Verdict, cmp.Or(a.Message, "no reason given")))
	}
}

// ResultOfError evaluates an error of the query: no verdict.
func ResultOfError(err error) Result {
	var callErr *altershield.CallError
	switch {
	case altershield.IsState(err):
		return noVerdict(v1alpha1.ReasonServerRejected, err.Error()+
			"; only scenes of generation 1 answer synchronously: see release-check-scene-key in ConfigMap "+altershield.ConfigMapName)
	case altershield.IsExists(err):
		return noVerdict(v1alpha1.ReasonServerRejected, err.Error()+"; the answer to an earlier query was lost")
	case errors.As(err, new(*altershield.ResultError)):
		return noVerdict(v1alpha1.ReasonServerRejected, err.Error())
	case errors.As(err, &callErr) && callErr.Kind == altershield.KindTimeout:
		return noVerdict(v1alpha1.ReasonVerdictTimedOut, err.Error())
	default:
		return noVerdict(v1alpha1.ReasonServerUnreachable, err.Error())
	}
}

func noVerdict(reason, message string) Result {
	return Result{v1alpha1.OutcomeNoVerdict, reason, message}
}
