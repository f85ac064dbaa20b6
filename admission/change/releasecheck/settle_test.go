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
	const pass, fail, nothing = v1alpha1.OutcomePass, v1alpha1.OutcomeFail, v1alpha1.OutcomeNone
	for name, tc := range map[string]struct {
		answer    altershield.ReleaseAnswer
		retrieved bool
		want      Said
	}{
		"pass":                             {altershield.ReleaseAnswer{Verdict: "pass"}, false, Said{pass, "ReleaseCheckPassed", ""}},
		"a pass without rules":             {altershield.ReleaseAnswer{Verdict: "pass", Unjudged: true}, false, Said{nothing, "VerdictTimedOut", "the server's check did not end in time: it answered with a pass without rules"}},
		"a pass without rules, confirmed":  {altershield.ReleaseAnswer{Verdict: "PASS", Unjudged: true}, true, Said{pass, "ReleaseCheckPassed", ""}},
		"a time-out that says so":          {altershield.ReleaseAnswer{Verdict: "pass", Unjudged: true, Message: "over 2000"}, false, Said{nothing, "VerdictTimedOut", "the server's check did not end in time: over 2000"}},
		"fail":                             {altershield.ReleaseAnswer{Verdict: "fail", Message: "freeze: not on Friday"}, false, Said{fail, "ReleaseCheckFailed", "freeze: not on Friday"}},
		"unpass":                           {altershield.ReleaseAnswer{Verdict: "unpass"}, false, Said{fail, "ReleaseCheckFailed", "the server failed it and gave no reason"}},
		"a fail is never confirmed a pass": {altershield.ReleaseAnswer{Verdict: "fail"}, true, Said{fail, "ReleaseCheckFailed", "the server failed it and gave no reason"}},
		"none":                             {altershield.ReleaseAnswer{Verdict: "none"}, false, Said{nothing, "NoVerdict", `the server said "none", which is neither pass nor fail: no reason given`}},
		"inconc":                           {altershield.ReleaseAnswer{Verdict: "INCONC", Message: "no data"}, true, Said{nothing, "NoVerdict", `the server said "INCONC", which is neither pass nor fail: no data`}},
		"an unknown word":                  {altershield.ReleaseAnswer{Verdict: "xyz"}, true, Said{nothing, "NoVerdict", `the server said "xyz", which is neither pass nor fail: no reason given`}},
		"no word":                          {altershield.ReleaseAnswer{}, true, Said{nothing, "NoVerdict", "the server gave no verdict"}},
	} {
		if diff := cmp.Diff(tc.want, Judge(tc.answer, tc.retrieved)); diff != "" {
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
		"a scene of another generation": {refused("103"), "ServerRefused", "release-check-scene-key"},
		"an order that exists":          {refused("106"), "ServerRefused", "earlier question was lost"},
		"an argument":                   {refused("101"), "ServerRefused", "said"},
		"a signature":                   {refused("102"), "ServerRefused", "said"},
		"the server's own failure":      {refused("901"), "ServerRefused", "said"},
		"a slow server":                 {broken(altershield.KindTimeout), "VerdictTimedOut", "timeout"},
		"a server that is away":         {broken(altershield.KindDial), "ServerUnreachable", "dial"},
		"our own limit":                 {broken(altershield.KindThrottled), "ServerUnreachable", "throttled"},
		"anything else":                 {errors.New("odd"), "ServerUnreachable", "odd"},
	} {
		got := Unanswered(tc.err)
		if got.Outcome != v1alpha1.OutcomeNone || got.Reason != tc.reason || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatBecomesOfARelease(t *testing.T) {
	const pass, fail, nothing = v1alpha1.OutcomePass, v1alpha1.OutcomeFail, v1alpha1.OutcomeNone
	for name, tc := range map[string]struct {
		outcome v1alpha1.Outcome
		policy  v1alpha1.NoVerdictPolicy
		shadow  bool
		want    Ruling
	}{
		"a pass is admitted":                             {pass, "Pass", false, Ruling{true, "ReleaseCheckPassed", false}},
		"a pass is admitted whatever the policy":         {pass, "Fail", false, Ruling{true, "ReleaseCheckPassed", false}},
		"a fail is refused":                              {fail, "Pass", false, Ruling{false, "ReleaseCheckFailed", true}},
		"a fail is admitted in shadow, and told":         {fail, "Fail", true, Ruling{true, "ReleaseCheckFailed", true}},
		"no verdict is admitted, and told":               {nothing, "Pass", false, Ruling{true, "ReleaseUnchecked", true}},
		"no verdict is refused where the policy says so": {nothing, "Fail", false, Ruling{false, "ReleaseUnchecked", true}},
		"no verdict is admitted in shadow, and told":     {nothing, "Fail", true, Ruling{true, "ReleaseUnchecked", true}},
	} {
		if diff := cmp.Diff(tc.want, Settle(tc.outcome, tc.policy, tc.shadow)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
