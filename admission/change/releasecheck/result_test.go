package releasecheck

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestResultOfAnAnswer(t *testing.T) {
	const pass, fail, nothing = v1alpha1.OutcomePass, v1alpha1.OutcomeFail, v1alpha1.OutcomeNoVerdict
	for name, tc := range map[string]struct {
		answer    altershield.ReleaseCheckAnswer
		retrieved bool
		want      Result
	}{
		"pass":               {altershield.ReleaseCheckAnswer{Verdict: "pass"}, false, Result{pass, "ReleaseCheckPassed", ""}},
		"pass without rules": {altershield.ReleaseCheckAnswer{Verdict: "pass", Unconfirmed: true}, false, Result{nothing, "VerdictTimedOut", "the server returned a pass without rules, and retrieve did not confirm it in time"}},
		"pass without rules, retrieved as a pass": {altershield.ReleaseCheckAnswer{Verdict: "PASS", Unconfirmed: true}, true, Result{pass, "ReleaseCheckPassed", ""}},
		"timeout with a message":                  {altershield.ReleaseCheckAnswer{Verdict: "pass", Unconfirmed: true, Message: "over 2000"}, false, Result{nothing, "VerdictTimedOut", "the server returned a pass without rules, and retrieve did not confirm it in time: over 2000"}},
		"fail":                                    {altershield.ReleaseCheckAnswer{Verdict: "fail", Message: "freeze: not on Friday"}, false, Result{fail, "ReleaseCheckFailed", "freeze: not on Friday"}},
		"unpass":                                  {altershield.ReleaseCheckAnswer{Verdict: "unpass"}, false, Result{fail, "ReleaseCheckFailed", "the server failed it and gave no reason"}},
		"fail, retrieved as a pass":               {altershield.ReleaseCheckAnswer{Verdict: "fail"}, true, Result{fail, "ReleaseCheckFailed", "the server failed it and gave no reason"}},
		"none":                                    {altershield.ReleaseCheckAnswer{Verdict: "none"}, false, Result{nothing, "NoVerdict", `the server returned verdict "none", which is neither pass nor fail: no reason given`}},
		"inconc":                                  {altershield.ReleaseCheckAnswer{Verdict: "INCONC", Message: "no data"}, true, Result{nothing, "NoVerdict", `the server returned verdict "INCONC", which is neither pass nor fail: no data`}},
		"unknown verdict":                         {altershield.ReleaseCheckAnswer{Verdict: "xyz"}, true, Result{nothing, "NoVerdict", `the server returned verdict "xyz", which is neither pass nor fail: no reason given`}},
		"missing verdict":                         {altershield.ReleaseCheckAnswer{}, true, Result{nothing, "NoVerdict", "the server gave no verdict"}},
	} {
		if diff := cmp.Diff(tc.want, ResultOf(tc.answer, tc.retrieved)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnErrorIsNoVerdictWithAReason(t *testing.T) {
	rejected := func(code string) error {
		return &altershield.ResultError{Action: "a", Code: code, Msg: "from the server"}
	}
	broken := func(kind altershield.CallErrorKind) error {
		return &altershield.CallError{Action: "a", Kind: kind, Err: context.DeadlineExceeded}
	}
	for name, tc := range map[string]struct {
		err          error
		reason, part string
	}{
		"a scene of another generation": {rejected("103"), "ServerRejected", "release-check-scene-key"},
		"an order that exists":          {rejected("106"), "ServerRejected", "earlier query was lost"},
		"an argument":                   {rejected("101"), "ServerRejected", "from the server"},
		"a signature":                   {rejected("102"), "ServerRejected", "from the server"},
		"an internal error":             {rejected("901"), "ServerRejected", "from the server"},
		"a slow server":                 {broken(altershield.KindTimeout), "VerdictTimedOut", "timeout"},
		"an unreachable server":         {broken(altershield.KindDial), "ServerUnreachable", "dial"},
		"the client's rate limit":       {broken(altershield.KindThrottled), "ServerUnreachable", "throttled"},
		"another error":                 {errors.New("other"), "ServerUnreachable", "other"},
	} {
		got := ResultOfError(tc.err)
		if got.Outcome != v1alpha1.OutcomeNoVerdict || got.Reason != tc.reason || !strings.Contains(got.Message, tc.part) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
