package v1alpha1

import "testing"

func TestAVerdictReplacesOnlyOneOfALowerPrecedence(t *testing.T) {
	ascending := []*StageVerdict{
		nil,
		{Verdict: "inconc"},
		{Verdict: "pass", WithoutRules: true},
		{Verdict: "pass"},
		{Verdict: "fail"},
	}
	for i, v := range ascending {
		if got := v.Precedence(); got != Precedence(i) {
			t.Errorf("%+v has precedence %d, want %d", v, got, i)
		}
	}
	for _, fail := range []*StageVerdict{{Verdict: "FAIL"}, {Verdict: " unpass "}, {Verdict: "fail", WithoutRules: true}} {
		if got := fail.Precedence(); got != PrecedenceFail {
			t.Errorf("%+v has precedence %d", fail, got)
		}
	}
	for _, none := range []*StageVerdict{{}, {Verdict: "none"}, {Verdict: "none", WithoutRules: true}} {
		if got := none.Precedence(); got != PrecedenceNoVerdict {
			t.Errorf("%+v has precedence %d", none, got)
		}
	}
}
