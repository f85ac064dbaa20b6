package v1alpha1

import "testing"

func TestWhatWasSaidOfAnOrder(t *testing.T) {
	server := func(stage Stage, word string) func(*ChangeWorkloadStatus) {
		return func(s *ChangeWorkloadStatus) {
			s.OrderVerdicts = append(s.OrderVerdicts, StageVerdict{Stage: stage, Verdict: word})
		}
	}
	silent := func(s *ChangeWorkloadStatus) {
		s.OrderVerdicts = append(s.OrderVerdicts, StageVerdict{Stage: StagePost, Verdict: "pass", Unjudged: true})
	}
	person := func(word string) func(*ChangeWorkloadStatus) {
		return func(s *ChangeWorkloadStatus) { s.OrderResult = &OrderResult{Verdict: word} }
	}
	for name, tc := range map[string]struct {
		said []func(*ChangeWorkloadStatus)
		want Outcome
	}{
		"nothing yet":                       {nil, OutcomePending},
		"PRE alone is no pass":              {[]func(*ChangeWorkloadStatus){server(StagePre, "pass")}, OutcomePending},
		"PRE fails":                         {[]func(*ChangeWorkloadStatus){server(StagePre, "fail")}, OutcomeFail},
		"PRE failed, POST passes":           {[]func(*ChangeWorkloadStatus){server(StagePre, "fail"), server(StagePost, "pass")}, OutcomeFail},
		"PRE said nothing, POST passes":     {[]func(*ChangeWorkloadStatus){server(StagePre, "inconc"), server(StagePost, "pass")}, OutcomePass},
		"POST says nothing that is known":   {[]func(*ChangeWorkloadStatus){server(StagePre, "pass"), server(StagePost, "maybe")}, OutcomeNoVerdict},
		"a pass that nobody stands behind":  {[]func(*ChangeWorkloadStatus){silent}, OutcomeNoVerdict},
		"a person passes what failed":       {[]func(*ChangeWorkloadStatus){server(StagePre, "fail"), person("pass")}, OutcomePass},
		"a person fails what passed":        {[]func(*ChangeWorkloadStatus){server(StagePost, "pass"), person("unpass")}, OutcomeFail},
		"a person says nothing of a fail":   {[]func(*ChangeWorkloadStatus){server(StagePost, "fail"), person("none")}, OutcomeFail},
		"a person judges what nobody did":   {[]func(*ChangeWorkloadStatus){silent, person("pass")}, OutcomePass},
		"a person needs no word of a judge": {[]func(*ChangeWorkloadStatus){person("fail")}, OutcomeFail},
	} {
		t.Run(name, func(t *testing.T) {
			var s ChangeWorkloadStatus
			for _, f := range tc.said {
				f(&s)
			}
			if got, _ := s.OrderOutcome(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
