package v1alpha1

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

func TestOrderOutcomeFollowsThePrecedenceOfVerdicts(t *testing.T) {
	server := func(stage Stage, verdict string) func(*ChangeWorkloadStatus) {
		return func(s *ChangeWorkloadStatus) {
			s.OrderVerdicts = append(s.OrderVerdicts, StageVerdict{Stage: stage, Verdict: verdict})
		}
	}
	unjudged := func(s *ChangeWorkloadStatus) {
		s.OrderVerdicts = append(s.OrderVerdicts, StageVerdict{Stage: StagePost, Verdict: "pass", UnconfirmedPass: true})
	}
	person := func(verdict string) func(*ChangeWorkloadStatus) {
		return func(s *ChangeWorkloadStatus) { s.OrderResult = &OrderResult{Verdict: verdict} }
	}
	for name, tc := range map[string]struct {
		facts []func(*ChangeWorkloadStatus)
		want  Outcome
	}{
		"no verdict yet":                                    {nil, OutcomePending},
		"PRE alone is no pass":                              {[]func(*ChangeWorkloadStatus){server(StagePre, "pass")}, OutcomePending},
		"PRE fails":                                         {[]func(*ChangeWorkloadStatus){server(StagePre, "fail")}, OutcomeFail},
		"PRE failed, POST passes":                           {[]func(*ChangeWorkloadStatus){server(StagePre, "fail"), server(StagePost, "pass")}, OutcomeFail},
		"PRE has no verdict, POST passes":                   {[]func(*ChangeWorkloadStatus){server(StagePre, "inconc"), server(StagePost, "pass")}, OutcomePass},
		"POST is neither pass nor fail":                     {[]func(*ChangeWorkloadStatus){server(StagePre, "pass"), server(StagePost, "maybe")}, OutcomeNoVerdict},
		"an unconfirmed pass is pending":                    {[]func(*ChangeWorkloadStatus){unjudged}, OutcomePending},
		"a person passes a failed order":                    {[]func(*ChangeWorkloadStatus){server(StagePre, "fail"), person("pass")}, OutcomePass},
		"a person fails a passed order":                     {[]func(*ChangeWorkloadStatus){server(StagePost, "pass"), person("unpass")}, OutcomeFail},
		"a result that is neither pass nor fail is ignored": {[]func(*ChangeWorkloadStatus){server(StagePost, "fail"), person("none")}, OutcomeFail},
		"a person passes an unjudged order":                 {[]func(*ChangeWorkloadStatus){unjudged, person("pass")}, OutcomePass},
		"a person fails an order without a verdict":         {[]func(*ChangeWorkloadStatus){person("fail")}, OutcomeFail},
	} {
		t.Run(name, func(t *testing.T) {
			var s ChangeWorkloadStatus
			for _, f := range tc.facts {
				f(&s)
			}
			if got, _ := s.OrderOutcome(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAReleaseThatFailedIsReplaced(t *testing.T) {
	step := func(name OrderStepName, state OrderState) *OrderStep { return &OrderStep{Name: name, State: state} }
	succeeded := func(reason string) duckv1.Conditions {
		return duckv1.Conditions{{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse, Reason: reason}}
	}
	for name, tc := range map[string]struct {
		status ChangeWorkloadStatus
		want   bool
	}{
		"it runs":                                  {ChangeWorkloadStatus{Phase: ReleaseRunning}, false},
		"a newer one ended it":                     {ChangeWorkloadStatus{Phase: ReleaseFailed, Status: duckv1.Status{Conditions: succeeded(ReasonSuperseded)}}, true},
		"it timed out":                             {ChangeWorkloadStatus{Phase: ReleaseFailed, Status: duckv1.Status{Conditions: succeeded(ReasonReleaseTimedOut)}}, false},
		"it is suspended":                          {ChangeWorkloadStatus{Phase: ReleaseSuspend}, false},
		"it is suspended, and its order checked":   {ChangeWorkloadStatus{Phase: ReleaseSuspend, OrderStep: step(OrderStepFinish, "")}, false},
		"it was suspended, and a rollback made":    {ChangeWorkloadStatus{Phase: ReleaseSuspend, OrderStep: step(OrderStepClose, OrderRollback)}, true},
		"it was suspended, and a repair released":  {ChangeWorkloadStatus{Phase: ReleaseSuspend, OrderStep: step(OrderStepClose, OrderCancel)}, true},
		"it failed after its Success":              {ChangeWorkloadStatus{Phase: ReleaseSuspend, OrderStep: step(OrderStepClose, OrderSuccess)}, false},
		"it succeeded, and its order is closed so": {ChangeWorkloadStatus{Phase: ReleaseSuccess, OrderStep: step(OrderStepClose, OrderSuccess)}, false},
	} {
		if got := tc.status.FailedAndReplaced(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAFailOfTheOrderCheckStaysUntilAPersonPassesIt(t *testing.T) {
	judged := func(reason string) func(*ChangeWorkloadStatus) {
		return func(s *ChangeWorkloadStatus) {
			s.Conditions = duckv1.Conditions{{Type: ReleaseOrderJudged, Status: corev1.ConditionFalse, Reason: reason}}
		}
	}
	person := func(verdict string) func(*ChangeWorkloadStatus) {
		return func(s *ChangeWorkloadStatus) { s.OrderResult = &OrderResult{Verdict: verdict} }
	}
	serverPass := func(s *ChangeWorkloadStatus) {
		s.OrderVerdicts = []StageVerdict{{Stage: StagePost, Verdict: "pass"}}
	}
	for name, tc := range map[string]struct {
		facts []func(*ChangeWorkloadStatus)
		want  bool
	}{
		"no verdict":                       {nil, false},
		"a person fails it":                {[]func(*ChangeWorkloadStatus){person("fail")}, true},
		"the person withdraws the fail":    {[]func(*ChangeWorkloadStatus){judged(ReasonOrderCheckFailed)}, true},
		"withdrawn, the server passes":     {[]func(*ChangeWorkloadStatus){judged(ReasonOrderCheckFailed), serverPass}, true},
		"withdrawn, neither pass nor fail": {[]func(*ChangeWorkloadStatus){judged(ReasonOrderCheckFailed), person("none")}, true},
		"a person passes it afterwards":    {[]func(*ChangeWorkloadStatus){judged(ReasonOrderCheckFailed), person("pass")}, false},
		"it is unjudged":                   {[]func(*ChangeWorkloadStatus){judged(ReasonFailedUnjudged)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s ChangeWorkloadStatus
			for _, f := range tc.facts {
				f(&s)
			}
			if got := s.OrderCheckFailed(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
