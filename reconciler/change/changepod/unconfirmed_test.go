package changepod

import (
	"cmp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// unconfirmed adds a pass without rules, which the server may have contradicted.
func unconfirmed(stage v1alpha1.Stage, contradicted bool) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) {
		s.Verdicts = append(s.Verdicts, v1alpha1.StageVerdict{
			Stage: stage, Verdict: "pass", UnconfirmedPass: true, Contradicted: contradicted, Time: metav1.NewMicroTime(t0),
		})
	}
}

// The published server also calls back a pass without rules for a check that runs.
func TestAPassWithoutRulesEndsNothingBeforeItsTimeout(t *testing.T) {
	const (
		pre, post  = v1alpha1.StagePre, v1alpha1.StagePost
		end        = v1alpha1.BatchExecuteDone
		pass, hold = v1alpha1.NoVerdictPass, v1alpha1.NoVerdictHold
		fail       = v1alpha1.NoVerdictFail
		timeout    = 120 * time.Second
		tooLate    = timeout + resend.RetrieveGrace

		judging, noVerdict, contradicted = v1alpha1.ReasonJudging, v1alpha1.ReasonNoVerdict, v1alpha1.ReasonVerdictContradicted
	)
	inPre := func(contradicted bool, more ...func(*v1alpha1.ChangePodStatus)) *v1alpha1.ChangePod {
		return batch(append([]func(*v1alpha1.ChangePodStatus){submission(pre, true), unconfirmed(pre, contradicted)}, more...)...)
	}
	inPost := func(contradicted bool, more ...func(*v1alpha1.ChangePodStatus)) *v1alpha1.ChangePod {
		return batch(append([]func(*v1alpha1.ChangePodStatus){submission(pre, true), verdict(pre, "pass"), submission(post, true), unconfirmed(post, contradicted)}, more...)...)
	}
	ends := settings.Settings{NoVerdictContradicted: pass}
	type want struct {
		Phase, Message v1alpha1.BatchPhase
		Wake           v1alpha1.Stage
		// Judged is the reason of condition Judged, Succeeded the status of condition
		// Succeeded.
		Judged, Succeeded string
	}
	for name, tc := range map[string]struct {
		batch  *v1alpha1.ChangePod
		after  time.Duration
		policy settings.Settings
		want   want
	}{
		"PRE: the server is asked":                                {inPre(false), time.Second, ends, want{v1alpha1.BatchPreSubmitted, "", pre, judging, "Unknown"}},
		"PRE: the server is asked again after a contradiction":    {inPre(true), time.Second, ends, want{v1alpha1.BatchPreSubmitted, "", pre, judging, "Unknown"}},
		"PRE: the server is asked at the timeout":                 {inPre(true), timeout, ends, want{v1alpha1.BatchPreSubmitted, "", pre, judging, "Unknown"}},
		"PRE: contradicted":                                       {inPre(true), tooLate, settings.Settings{}, want{end, v1alpha1.BatchPreTimeout, "", contradicted, "Unknown"}},
		"PRE: contradicted, policy Fail":                          {inPre(true), tooLate, settings.Settings{NoVerdictContradicted: fail}, want{end, v1alpha1.BatchPreTimeout, "", contradicted, "False"}},
		"PRE: contradicted, policy Pass continues with POST":      {inPre(true), tooLate, ends, want{v1alpha1.BatchPostWait, "", post, judging, "Unknown"}},
		"PRE: contradicted, and POST was submitted":               {inPre(true, submission(post, true)), time.Second, settings.Settings{}, want{v1alpha1.BatchPostSubmitted, "", post, judging, "Unknown"}},
		"PRE: the server never answered, continues with POST":     {inPre(false), tooLate, settings.Settings{}, want{v1alpha1.BatchPostWait, "", post, judging, "Unknown"}},
		"PRE: the server never answered, policy Hold":             {inPre(false), tooLate, settings.Settings{NoVerdictPre: hold}, want{end, v1alpha1.BatchPreTimeout, "", noVerdict, "Unknown"}},
		"PRE: ended contradicted stays ended":                     {inPre(true, ended(v1alpha1.BatchPreTimeout)), tooLate, ends, want{end, v1alpha1.BatchPreTimeout, "", noVerdict, "True"}},
		"PRE: a late pass continues a contradicted batch":         {batch(submission(pre, true), verdict(pre, "pass"), ended(v1alpha1.BatchPreTimeout)), time.Second, settings.Settings{}, want{v1alpha1.BatchPostWait, "", post, judging, "Unknown"}},
		"POST: the server is asked":                               {inPost(false), time.Second, ends, want{v1alpha1.BatchPostSubmitted, "", post, judging, "Unknown"}},
		"POST: the server is asked again after a contradiction":   {inPost(true), time.Second, ends, want{v1alpha1.BatchPostSubmitted, "", post, judging, "Unknown"}},
		"POST: contradicted":                                      {inPost(true), tooLate, settings.Settings{}, want{end, v1alpha1.BatchPostTimeout, "", contradicted, "Unknown"}},
		"POST: contradicted, policies of no verdict do not count": {inPost(true), tooLate, settings.Settings{NoVerdict: fail, NoVerdictPost: fail}, want{end, v1alpha1.BatchPostTimeout, "", contradicted, "Unknown"}},
		"POST: contradicted, policy Pass":                         {inPost(true), tooLate, ends, want{end, v1alpha1.BatchPostTimeout, "", contradicted, "True"}},
		"POST: the server never answered":                         {inPost(false), tooLate, settings.Settings{}, want{end, v1alpha1.BatchPostTimeout, "", noVerdict, "True"}},
		"POST: the server never answered, policy Hold":            {inPost(false), tooLate, settings.Settings{NoVerdictPost: hold}, want{end, v1alpha1.BatchPostTimeout, "", noVerdict, "Unknown"}},
		"POST: a person judges it":                                {inPost(true, person("unpass")), time.Second, ends, want{end, v1alpha1.BatchPostFinish, "", v1alpha1.ReasonVerdictReceived, "False"}},
		"POST: the finish has no stored answer":                   {batch(verdict(pre, "pass"), intent(post), unconfirmed(post, true)), time.Second, ends, want{v1alpha1.BatchPostSubmitted, "", post, judging, "Unknown"}},
		"POST: the finish had an error":                           {batch(verdict(pre, "pass"), submission(post, false), unconfirmed(post, true)), tooLate, settings.Settings{}, want{end, v1alpha1.BatchPostTimeout, "", contradicted, "Unknown"}},
		"POST: a late fail counts":                                {batch(verdict(pre, "pass"), submission(post, true), verdict(post, "fail"), ended(v1alpha1.BatchPostTimeout)), tooLate, ends, want{end, v1alpha1.BatchPostFinish, "", v1alpha1.ReasonVerdictReceived, "False"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings.Default()
			s.NoVerdict, s.NoVerdictContradicted = cmp.Or(tc.policy.NoVerdict, s.NoVerdict), cmp.Or(tc.policy.NoVerdictContradicted, s.NoVerdictContradicted)
			s.NoVerdictPre, s.NoVerdictPost = tc.policy.NoVerdictPre, tc.policy.NoVerdictPost
			got := Decide(Input{Now: t0.Add(tc.after), Settings: s, ServerConfigured: true, ChangePod: tc.batch})
			next, _ := derive(tc.batch, got, s, t0.Add(tc.after))
			judged := next.Status.GetCondition(v1alpha1.BatchJudged)
			succeeded := next.Status.GetCondition(apis.ConditionSucceeded)
			if diff := gocmp.Diff(tc.want, want{got.Phase, got.Message, got.WakeStage, judged.Reason, string(succeeded.Status)}); diff != "" {
				t.Error(diff)
			}
			if judged.Reason == contradicted && !strings.Contains(judged.Message, "CheckTimeout") {
				t.Errorf("message %q does not name the limit of the scene", judged.Message)
			}
			inQueue := got.WakeStage != "" && tc.batch.Status.SubmissionOf(got.WakeStage) == nil
			if got.Phase != end && !inQueue && !got.Deadline.After(t0.Add(tc.after)) {
				t.Errorf("a batch that waits has deadline %s, which has passed", got.Deadline)
			}
		})
	}
}

// intent adds a call without an answer.
func intent(stage v1alpha1.Stage) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) {
		s.Submissions = append(s.Submissions, v1alpha1.Submission{Stage: stage, IntentTime: metav1.NewMicroTime(t0), Attempts: 1})
	}
}
