package v1alpha1

import "testing"

func TestTheFailureOfAnUnjudgedPodIsNoFailedCheck(t *testing.T) {
	for message, want := range map[string]string{
		"too many errors":     "pod p failed its check: too many errors",
		"":                    "pod p failed its check",
		UnjudgedMessage:       "pod p counts as failed: no judge gave a verdict",
		formerUnjudgedMessage: "pod p counts as failed: nobody judged",
	} {
		if got := (&PodSummary{Pod: "p", Message: message}).Failure(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAVerdictReplacesOnlyOneOfALowerPrecedence(t *testing.T) {
	ascending := []*StageVerdict{
		nil,
		{Verdict: "inconc"},
		{Verdict: "pass", UnconfirmedPass: true},
		{Verdict: "pass"},
		{Verdict: "fail"},
	}
	for i, v := range ascending {
		if got := v.Precedence(); got != Precedence(i) {
			t.Errorf("%+v has precedence %d, want %d", v, got, i)
		}
	}
	for _, fail := range []*StageVerdict{{Verdict: "FAIL"}, {Verdict: " unpass "}, {Verdict: "fail", UnconfirmedPass: true}} {
		if got := fail.Precedence(); got != PrecedenceFail {
			t.Errorf("%+v has precedence %d", fail, got)
		}
	}
	for _, none := range []*StageVerdict{{}, {Verdict: "none"}, {Verdict: "none", UnconfirmedPass: true}} {
		if got := none.Precedence(); got != PrecedenceNoVerdict {
			t.Errorf("%+v has precedence %d", none, got)
		}
	}
}
