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

func TestWhatAnAnswerCountsAs(t *testing.T) {
	const pass, fail, nothing = v1alpha1.OutcomePass, v1alpha1.OutcomeFail, v1alpha1.OutcomeNoVerdict
	for name, tc := range map[string]struct {
		answer    altershield.ReleaseAnswer
		retrieved bool
		want      Result
	}{
		"pass":                             {altershield.ReleaseAnswer{Verdict: "pass"}, false, Result{pass, "ReleaseCheckPassed", ""}},
		"a pass without rules":             {altershield.ReleaseAnswer{Verdict: "pass", Unjudged: true}, false, Result{nothing, "VerdictTimedOut", "the server's check did not complete in time: the server returned a pass without rules"}},
		"a pass without rules, confirmed":  {altershield.ReleaseAnswer{Verdict: "PASS", Unjudged: true}, true, Result{pass, "ReleaseCheckPassed", ""}},
		"a time-out that says so":          {altershield.ReleaseAnswer{Verdict: "pass", Unjudged: true, Message: "over 2000"}, false, Result{nothing, "VerdictTimedOut", "the server's check did not complete in time: over 2000"}},
		"fail":                             {altershield.ReleaseAnswer{Verdict: "fail", Message: "freeze: not on Friday"}, false, Result{fail, "ReleaseCheckFailed", "freeze: not on Friday"}},
		"unpass":                           {altershield.ReleaseAnswer{Verdict: "unpass"}, false, Result{fail, "ReleaseCheckFailed", "the server failed it and gave no reason"}},
		"a fail is never confirmed a pass": {altershield.ReleaseAnswer{Verdict: "fail"}, true, Result{fail, "ReleaseCheckFailed", "the server failed it and gave no reason"}},
		"none":                             {altershield.ReleaseAnswer{Verdict: "none"}, false, Result{nothing, "NoVerdict", `the server returned verdict "none", which is neither pass nor fail: no reason given`}},
		"inconc":                           {altershield.ReleaseAnswer{Verdict: "INCONC", Message: "no data"}, true, Result{nothing, "NoVerdict", `the server returned verdict "INCONC", which is neither pass nor fail: no data`}},
		"an unknown word":                  {altershield.ReleaseAnswer{Verdict: "xyz"}, true, Result{nothing, "NoVerdict", `the server returned verdict "xyz", which is neither pass nor fail: no reason given`}},
		"no word":                          {altershield.ReleaseAnswer{}, true, Result{nothing, "NoVerdict", "the server gave no verdict"}},
	} {
		if diff := cmp.Diff(tc.want, ResultOf(tc.answer, tc.retrieved)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnErrorIsNoVerdictAndSaysWhy(t *testing.T) {
	refused := func(code string) error { return &altershield.ResultError{Action: "a", Code: code, Msg: "said"} }
	broken := func(kind altershield.TransportKind) error {
		return &altershield.TransportError{Action: "a", Kind: kind, Err: context.DeadlineExceeded}
	}
	for name, tc := range map[string]struct {
		err          error
		reason, says string
	}{
		"a scene of another generation": {refused("103"), "ServerRejected", "release-check-scene-key"},
		"an order that exists":          {refused("106"), "ServerRejected", "earlier query was lost"},
		"an argument":                   {refused("101"), "ServerRejected", "said"},
		"a signature":                   {refused("102"), "ServerRejected", "said"},
		"the server's own failure":      {refused("901"), "ServerRejected", "said"},
		"a slow server":                 {broken(altershield.KindTimeout), "VerdictTimedOut", "timeout"},
		"a server that is away":         {broken(altershield.KindDial), "ServerUnreachable", "dial"},
		"our own limit":                 {broken(altershield.KindThrottled), "ServerUnreachable", "throttled"},
		"anything else":                 {errors.New("odd"), "ServerUnreachable", "odd"},
	} {
		got := ResultOfError(tc.err)
		if got.Outcome != v1alpha1.OutcomeNoVerdict || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatBecomesOfARelease(t *testing.T) {
	const pass, fail, nothing = v1alpha1.OutcomePass, v1alpha1.OutcomeFail, v1alpha1.OutcomeNoVerdict
	for name, tc := range map[string]struct {
		outcome v1alpha1.Outcome
		policy  v1alpha1.NoVerdictPolicy
		shadow  bool
		want    Enforcement
	}{
		"a pass is admitted":                             {pass, "Pass", false, Enforcement{true, "ReleaseCheckPassed", false}},
		"a pass is admitted whatever the policy":         {pass, "Fail", false, Enforcement{true, "ReleaseCheckPassed", false}},
		"a fail is refused":                              {fail, "Pass", false, Enforcement{false, "ReleaseCheckFailed", true}},
		"a fail is admitted in shadow, and told":         {fail, "Fail", true, Enforcement{true, "ReleaseCheckFailed", true}},
		"no verdict is admitted, and told":               {nothing, "Pass", false, Enforcement{true, "ReleaseUnchecked", true}},
		"no verdict is refused where the policy says so": {nothing, "Fail", false, Enforcement{false, "ReleaseUnchecked", true}},
		"no verdict is admitted in shadow, and told":     {nothing, "Fail", true, Enforcement{true, "ReleaseUnchecked", true}},
	} {
		if diff := cmp.Diff(tc.want, Enforce(tc.outcome, tc.policy, tc.shadow)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
