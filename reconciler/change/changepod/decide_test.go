package changepod

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

var t0 = time.Unix(1_700_000_000, 0)

// batch returns a ChangePod of one pod, made at t0, with the given facts.
func batch(facts ...func(*v1alpha1.ChangePodStatus)) *v1alpha1.ChangePod {
	c := &v1alpha1.ChangePod{
		ObjectMeta: metav1.ObjectMeta{Name: "a--x--v--x--1", CreationTimestamp: metav1.NewTime(t0)},
		Spec:       v1alpha1.ChangePodSpec{PodInfos: []v1alpha1.PodSummary{{Pod: "p1"}}},
	}
	for _, f := range facts {
		f(&c.Status)
	}
	return c
}

func verdict(stage v1alpha1.Stage, word string) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) {
		s.Verdicts = append(s.Verdicts, v1alpha1.StageVerdict{Stage: stage, Verdict: word, Time: metav1.NewMicroTime(t0)})
	}
}

func submission(stage v1alpha1.Stage, answered bool) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) {
		sub := v1alpha1.Submission{Stage: stage, IntentTime: metav1.NewMicroTime(t0), Attempts: 1}
		if answered {
			at := metav1.NewMicroTime(t0)
			sub.AnsweredTime = &at
		} else {
			sub.Error = &v1alpha1.ServerError{Reason: v1alpha1.ReasonServerRejected, Message: "103"}
		}
		s.Submissions = append(s.Submissions, sub)
	}
}

// repeated repeats the last call so long after t0, after an answered start.
func repeated(later time.Duration, answered bool) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) {
		sub := &s.Submissions[len(s.Submissions)-1]
		first, at := sub.IntentTime, metav1.NewMicroTime(t0.Add(later))
		sub.FirstIntentTime, sub.IntentTime, sub.Attempts, sub.EarlierNodes = &first, at, 2, []string{"earlier"}
		if sub.AnsweredTime = nil; answered {
			sub.AnsweredTime = &at
		}
	}
}

// woken is when the first wake-up of each stage was sent; 0 means that it was not.
func woken(after time.Duration) map[v1alpha1.Stage]time.Time {
	if after == 0 {
		return nil
	}
	return map[v1alpha1.Stage]time.Time{v1alpha1.StagePre: t0.Add(after), v1alpha1.StagePost: t0.Add(after)}
}

func person(word string) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) {
		s.PodResults = append(s.PodResults, v1alpha1.PodSummary{Pod: "p1", Verdict: word})
	}
}

func ended(message v1alpha1.BatchPhase) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) { s.Phase, s.Message = v1alpha1.BatchExecuteDone, string(message) }
}

func TestTheStateOfABatchFollowsFromItsFacts(t *testing.T) {
	const (
		pre, post = v1alpha1.StagePre, v1alpha1.StagePost
		doneIt    = v1alpha1.BatchExecuteDone
		hold      = v1alpha1.NoVerdictHold
		fail      = v1alpha1.NoVerdictFail
	)
	sent := func(s *v1alpha1.ChangePodStatus) {
		s.Submissions = append(s.Submissions, v1alpha1.Submission{Stage: post, IntentTime: metav1.NewMicroTime(t0), Attempts: 1})
	}
	all := func(p v1alpha1.NoVerdictPolicy) settings.Settings { return settings.Settings{NoVerdict: p} }
	type want struct {
		Phase, Message v1alpha1.BatchPhase
		Wake           v1alpha1.Stage
	}
	for name, tc := range map[string]struct {
		batch            *v1alpha1.ChangePod
		after            time.Duration
		noServer         bool
		orderNotAccepted bool
		orderCheckFailed bool
		superseded       bool
		orderJudgedSince time.Duration
		wokenAt          time.Duration     // 0: the wake-up waits in the queue
		policy           settings.Settings // only its no-verdict policies are used
		want             want
	}{
		"a new batch waits for its start":                                  {batch: batch(), want: want{v1alpha1.BatchPreWait, "", pre}},
		"a start that was answered waits for PRE":                          {batch: batch(submission(pre, true)), want: want{v1alpha1.BatchPreSubmitted, "", ""}},
		"the server is asked for PRE after a second":                       {batch: batch(submission(pre, true)), after: time.Second, want: want{v1alpha1.BatchPreSubmitted, "", pre}},
		"a start that is repeated waits for its answer":                    {batch: batch(submission(pre, true), repeated(100*time.Second, false)), after: 119 * time.Second, want: want{v1alpha1.BatchPreSubmitted, "", pre}},
		"the timeout counts from the first start":                          {batch: batch(submission(pre, true), repeated(100*time.Second, true)), after: 135 * time.Second, want: want{doneIt, v1alpha1.BatchPreTimeout, ""}},
		"the timeout counts from the first start, which was answered":      {batch: batch(submission(pre, true), repeated(100*time.Second, false)), after: 135 * time.Second, want: want{doneIt, v1alpha1.BatchPreTimeout, ""}},
		"the server is asked for POST after a second":                      {batch: batch(verdict(pre, "pass"), submission(post, true)), after: time.Second, want: want{v1alpha1.BatchPostSubmitted, "", post}},
		"a rejected start is repeated":                                     {batch: batch(submission(pre, false)), want: want{v1alpha1.BatchPreWait, "", pre}},
		"without a server it ends at once":                                 {batch: batch(), noServer: true, want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"without an accepted order it ends":                                {batch: batch(), orderNotAccepted: true, want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"no answer to the start in time ends it":                           {batch: batch(submission(pre, false)), after: 120 * time.Second, want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"the server is asked for a late PRE verdict":                       {batch: batch(submission(pre, true)), after: 120 * time.Second, want: want{v1alpha1.BatchPreSubmitted, "", pre}},
		"no PRE verdict after asking ends it":                              {batch: batch(submission(pre, true)), after: 135 * time.Second, want: want{doneIt, v1alpha1.BatchPreTimeout, ""}},
		"a PRE pass waits for the finish":                                  {batch: batch(submission(pre, true), verdict(pre, "pass")), want: want{v1alpha1.BatchPostWait, "", post}},
		"an inconclusive PRE verdict continues with POST":                  {batch: batch(submission(pre, true), verdict(pre, "inconc")), want: want{v1alpha1.BatchPostWait, "", post}},
		"a PRE fail ends it":                                               {batch: batch(submission(pre, true), verdict(pre, "fail")), want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"a finish that was answered waits for POST":                        {batch: batch(verdict(pre, "pass"), submission(post, true)), want: want{v1alpha1.BatchPostSubmitted, "", ""}},
		"a finish that was just sent wakes nobody":                         {batch: batch(verdict(pre, "pass"), sent), after: 1999 * time.Millisecond, want: want{v1alpha1.BatchPostSubmitted, "", ""}},
		"a finish that was sent waits until its answer is written":         {batch: batch(verdict(pre, "pass"), sent), after: 2 * time.Second, want: want{v1alpha1.BatchPostSubmitted, "", post}},
		"a finish whose answer is not written times out":                   {batch: batch(verdict(pre, "pass"), sent), after: 135 * time.Second, want: want{doneIt, v1alpha1.BatchPostTimeout, ""}},
		"no answer to the finish in time ends it":                          {batch: batch(verdict(pre, "pass"), submission(post, false)), after: 120 * time.Second, want: want{doneIt, v1alpha1.BatchPostFailed, ""}},
		"no POST verdict after asking ends it":                             {batch: batch(verdict(pre, "pass"), submission(post, true)), after: 135 * time.Second, want: want{doneIt, v1alpha1.BatchPostTimeout, ""}},
		"a POST pass ends it":                                              {batch: batch(verdict(pre, "pass"), verdict(post, "pass")), want: want{doneIt, v1alpha1.BatchPostFinish, ""}},
		"a POST fail ends it":                                              {batch: batch(verdict(pre, "pass"), verdict(post, "fail")), want: want{doneIt, v1alpha1.BatchPostFinish, ""}},
		"a POST verdict that overtook PRE ends it":                         {batch: batch(verdict(post, "pass")), want: want{doneIt, v1alpha1.BatchPostFinish, ""}},
		"a person ends it at any time":                                     {batch: batch(submission(pre, true), person("pass")), want: want{doneIt, v1alpha1.BatchPostFinish, ""}},
		"a person judges an unjudged batch":                                {batch: batch(ended(v1alpha1.BatchPreFailed), person("unpass")), noServer: true, want: want{doneIt, v1alpha1.BatchPostFinish, ""}},
		"a result that is neither pass nor fail has no effect":             {batch: batch(person("none")), want: want{v1alpha1.BatchPreWait, "", pre}},
		"an unjudged batch stays ended when a server is configured":        {batch: batch(ended(v1alpha1.BatchPreFailed)), want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"a batch that a person ended continues when the result is removed": {batch: batch(ended(v1alpha1.BatchPostFinish)), want: want{v1alpha1.BatchPreWait, "", pre}},
		"a late PRE verdict continues an unjudged batch":                   {batch: batch(ended(v1alpha1.BatchPreTimeout), verdict(pre, "pass")), want: want{v1alpha1.BatchPostWait, "", post}},
		"a late POST verdict changes the end":                              {batch: batch(ended(v1alpha1.BatchPostTimeout), verdict(pre, "pass"), verdict(post, "fail")), want: want{doneIt, v1alpha1.BatchPostFinish, ""}},
		"a batch that timed out in POST stays so without a server":         {batch: batch(ended(v1alpha1.BatchPostTimeout), verdict(pre, "pass")), noServer: true, want: want{doneIt, v1alpha1.BatchPostTimeout, ""}},
		"an inconclusive PRE verdict, policy Hold":                         {batch: batch(submission(pre, true), verdict(pre, "inconc")), policy: all(hold), want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"an inconclusive PRE verdict, policy Fail for PRE":                 {batch: batch(submission(pre, true), verdict(pre, "inconc")), policy: settings.Settings{NoVerdictPre: fail}, want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"an inconclusive PRE verdict, policy Fail for POST":                {batch: batch(submission(pre, true), verdict(pre, "inconc")), policy: settings.Settings{NoVerdictPost: fail}, want: want{v1alpha1.BatchPostWait, "", post}},
		"a late PRE pass continues a held batch":                           {batch: batch(ended(v1alpha1.BatchPreFailed), verdict(pre, "pass")), policy: all(hold), want: want{v1alpha1.BatchPostWait, "", post}},
		"no answer to the start, policy Hold":                              {batch: batch(submission(pre, false)), after: time.Hour, policy: all(hold), want: want{v1alpha1.BatchPreWait, "", pre}},
		"no answer to the finish, policy Hold for POST":                    {batch: batch(verdict(pre, "pass"), submission(post, false)), after: time.Hour, policy: settings.Settings{NoVerdictPost: hold}, want: want{v1alpha1.BatchPostWait, "", post}},
		"no answer to the finish, policy Hold for PRE":                     {batch: batch(verdict(pre, "pass"), submission(post, false)), after: time.Hour, policy: settings.Settings{NoVerdictPre: hold}, want: want{doneIt, v1alpha1.BatchPostFailed, ""}},
		"no POST verdict, policy Hold":                                     {batch: batch(verdict(pre, "pass"), submission(post, true)), after: time.Hour, policy: all(hold), want: want{doneIt, v1alpha1.BatchPostTimeout, ""}},
		"the order check failed: no batch is started":                      {batch: batch(), orderCheckFailed: true, after: time.Hour, want: want{v1alpha1.BatchPreWait, "", ""}},
		"the order check failed: an intent without an answer is given up":  {batch: batch(submission(pre, false)), orderCheckFailed: true, after: time.Hour, want: want{v1alpha1.BatchPreWait, "", ""}},
		"the order check failed: a started batch continues":                {batch: batch(submission(pre, true), verdict(pre, "pass")), orderCheckFailed: true, want: want{v1alpha1.BatchPostWait, "", post}},
		"superseded: a batch that was not started ends":                    {batch: batch(), superseded: true, policy: all(hold), want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"superseded: a batch whose finish was not called ends":             {batch: batch(verdict(pre, "pass")), superseded: true, policy: all(hold), want: want{doneIt, v1alpha1.BatchPostFailed, ""}},
		"superseded: an accepted batch waits for its verdict":              {batch: batch(submission(pre, true)), superseded: true, want: want{v1alpha1.BatchPreSubmitted, "", ""}},
		"the fail of the order check was overruled":                        {batch: batch(submission(pre, false)), orderJudgedSince: time.Hour, after: time.Hour + time.Minute, want: want{v1alpha1.BatchPreWait, "", pre}},
		"a start that waits for its turn has no deadline":                  {batch: batch(), after: 24 * time.Hour, want: want{v1alpha1.BatchPreWait, "", pre}},
		"a finish that waits for its turn has no deadline":                 {batch: batch(verdict(pre, "pass")), after: 24 * time.Hour, want: want{v1alpha1.BatchPostWait, "", post}},
		"no start was made within submit-timeout":                          {batch: batch(), wokenAt: time.Hour, after: time.Hour + 10*time.Minute, want: want{doneIt, v1alpha1.BatchPreFailed, ""}},
		"a start may be made until submit-timeout":                         {batch: batch(), wokenAt: time.Hour, after: time.Hour + 9*time.Minute, want: want{v1alpha1.BatchPreWait, "", pre}},
		"no finish was made within submit-timeout":                         {batch: batch(verdict(pre, "pass")), wokenAt: time.Hour, after: time.Hour + 10*time.Minute, want: want{doneIt, v1alpha1.BatchPostFailed, ""}},
		"no start was made within submit-timeout, policy Hold":             {batch: batch(), wokenAt: time.Hour, after: time.Hour + 10*time.Minute, policy: all(hold), want: want{v1alpha1.BatchPreWait, "", pre}},
		"a later start does not move the deadline":                         {batch: batch(submission(pre, true), repeated(100*time.Second, true)), after: 120 * time.Second, want: want{v1alpha1.BatchPreSubmitted, "", pre}},
		"a later start does not move the end":                              {batch: batch(submission(pre, true), repeated(100*time.Second, true)), after: 135 * time.Second, want: want{doneIt, v1alpha1.BatchPreTimeout, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings.Default()
			s.NoVerdict = cmp.Or(tc.policy.NoVerdict, s.NoVerdict)
			s.NoVerdictPre, s.NoVerdictPost = tc.policy.NoVerdictPre, tc.policy.NoVerdictPost
			got := Decide(Input{
				Now: t0.Add(tc.after), Settings: s, ServerConfigured: !tc.noServer, OrderAbandoned: tc.orderNotAccepted,
				OrderCheckFailed: tc.orderCheckFailed, Superseded: tc.superseded, OrderJudgedSince: t0.Add(tc.orderJudgedSince), WokenSince: woken(tc.wokenAt), ChangePod: tc.batch,
			})
			next, _ := derive(tc.batch, got, s, t0.Add(tc.after))
			for _, c := range next.Status.Conditions {
				if c.Reason == "" {
					t.Errorf("condition %s is %s without a reason", c.Type, c.Status)
				}
			}
			if diff := gocmp.Diff(tc.want, want{got.Phase, got.Message, got.WakeStage}); diff != "" {
				t.Error(diff)
			}
			inQueue := tc.wokenAt == 0 && tc.batch.Status.SubmissionOf(got.WakeStage) == nil && got.WakeStage != ""
			if got.Phase != doneIt && !got.HeldUnjudged && !tc.orderCheckFailed && !inQueue && !got.Deadline.After(t0.Add(tc.after)) {
				t.Errorf("a batch that waits has deadline %s, which has passed", got.Deadline)
			}
		})
	}
}

func TestDeadlinesThatPassedWhileNoProcessRanAreExtended(t *testing.T) {
	const pre, post = v1alpha1.StagePre, v1alpha1.StagePost
	late := 10 * time.Minute
	for name, tc := range map[string]struct {
		batch *v1alpha1.ChangePod
		// uptime is the time since the first decision of the process.
		uptime time.Duration
		want   v1alpha1.BatchPhase
		wake   v1alpha1.Stage
	}{
		"no call was made":                {batch(), time.Hour, v1alpha1.BatchPreWait, pre},
		"the start was rejected":          {batch(submission(pre, false)), time.Second, v1alpha1.BatchPreWait, pre},
		"the PRE callback may be lost":    {batch(submission(pre, true)), time.Second, v1alpha1.BatchPreSubmitted, pre},
		"the POST callback may be lost":   {batch(verdict(pre, "pass"), submission(post, true)), time.Second, v1alpha1.BatchPostSubmitted, post},
		"no PRE verdict within the grace": {batch(submission(pre, true)), resend.RetrieveGrace, v1alpha1.BatchExecuteDone, ""},
		"the clock was set back":          {batch(submission(pre, false)), -time.Hour, v1alpha1.BatchExecuteDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := t0.Add(late)
			got := Decide(Input{Now: now, DecidingSince: now.Add(-tc.uptime), Settings: settings.Default(), ServerConfigured: true, ChangePod: tc.batch})
			if got.Phase != tc.want || got.WakeStage != tc.wake {
				t.Errorf("got %s and wake %q, want %s and %q", got.Phase, got.WakeStage, tc.want, tc.wake)
			}
			if got.Phase != v1alpha1.BatchExecuteDone && len(tc.batch.Status.Submissions) > 0 && !got.Deadline.After(now) {
				t.Errorf("a batch that waits has deadline %s, which has passed", got.Deadline)
			}
		})
	}
}

func TestTheOutcomeOfAPodFollowsFromTheVerdicts(t *testing.T) {
	const pre, post = v1alpha1.StagePre, v1alpha1.StagePost
	server := func(word string) func(*v1alpha1.ChangePodStatus) {
		return func(s *v1alpha1.ChangePodStatus) {
			s.PodResults = append(s.PodResults, v1alpha1.PodSummary{Pod: "p1", Verdict: word, Source: v1alpha1.SourceServer})
		}
	}
	for name, tc := range map[string]struct {
		batch *v1alpha1.ChangePod
		want  v1alpha1.Outcome
	}{
		"no verdict":                                  {batch(), v1alpha1.OutcomePending},
		"PRE passes":                                  {batch(verdict(pre, "pass")), v1alpha1.OutcomePending},
		"PRE fails":                                   {batch(verdict(pre, "fail")), v1alpha1.OutcomeFail},
		"POST passes":                                 {batch(verdict(post, "pass")), v1alpha1.OutcomePass},
		"POST fails, in other letters":                {batch(verdict(post, "UnPass ")), v1alpha1.OutcomeFail},
		"PRE failed, POST passes":                     {batch(verdict(pre, "fail"), verdict(post, "pass")), v1alpha1.OutcomeFail},
		"POST is inconclusive":                        {batch(ended("PostFinish"), verdict(post, "inconc")), v1alpha1.OutcomeNoVerdict},
		"POST is an unknown word":                     {batch(ended("PostFinish"), verdict(post, "maybe")), v1alpha1.OutcomeNoVerdict},
		"ended by a person who removed the result":    {batch(ended("PostFinish")), v1alpha1.OutcomePending},
		"ended unjudged":                              {batch(ended("PreFailed")), v1alpha1.OutcomeNoVerdict},
		"a person passes what failed":                 {batch(verdict(post, "fail"), person("pass")), v1alpha1.OutcomePass},
		"a person fails what passed":                  {batch(verdict(post, "pass"), person("unpass")), v1alpha1.OutcomeFail},
		"a person gives no verdict after a fail":      {batch(verdict(post, "fail"), person("")), v1alpha1.OutcomeFail},
		"the server passes one pod of a failed batch": {batch(verdict(post, "fail"), server("pass")), v1alpha1.OutcomePass},
		"the server gives no verdict for one pod of a batch that passed": {batch(verdict(post, "pass"), server("none")), v1alpha1.OutcomePass},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := tc.batch.OutcomeOf("p1"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A new process has not woken function submit yet, and extends deadlines. A rollout that it
// resumes meanwhile releases a version that nobody judged.
func TestABatchThatIsHeldWithoutAnAcceptedCallStaysHeldAcrossARestart(t *testing.T) {
	heldFor := func(reason string) func(*v1alpha1.ChangePodStatus) {
		return func(s *v1alpha1.ChangePodStatus) {
			s.Conditions = append(s.Conditions, apis.Condition{Type: v1alpha1.BatchJudged, Status: corev1.ConditionFalse, Reason: reason, Message: "why"})
		}
	}
	const pre, post, hold = v1alpha1.StagePre, v1alpha1.StagePost, v1alpha1.NoVerdictHold
	for name, tc := range map[string]struct {
		batch  *v1alpha1.ChangePod
		policy v1alpha1.NoVerdictPolicy
		held   bool
		wake   v1alpha1.Stage
	}{
		"the start was not made":           {batch(heldFor(v1alpha1.ReasonNotSubmitted)), hold, true, pre},
		"the finish was not made":          {batch(verdict(pre, "pass"), heldFor(v1alpha1.ReasonNotSubmitted)), hold, true, post},
		"the start was rejected":           {batch(submission(pre, false), heldFor(v1alpha1.ReasonServerRejected)), hold, true, pre},
		"the server was unreachable":       {batch(submission(pre, false), heldFor(v1alpha1.ReasonServerUnreachable)), hold, true, pre},
		"the start was accepted meanwhile": {batch(submission(pre, true), heldFor(v1alpha1.ReasonNotSubmitted)), hold, false, pre},
		"the policy is Pass meanwhile":     {batch(heldFor(v1alpha1.ReasonNotSubmitted)), v1alpha1.NoVerdictPass, false, pre},
		"another judge holds the batch":    {batch(heldFor(v1alpha1.ReasonNoVerdict)), hold, false, pre},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings.Default()
			s.NoVerdict = tc.policy
			now := t0.Add(time.Hour)
			got := Decide(Input{Now: now, DecidingSince: now, Settings: s, ServerConfigured: true, ChangePod: tc.batch})
			if got.HeldUnjudged != tc.held || got.WakeStage != tc.wake {
				t.Errorf("held %v, function submit is woken for %q, want %v and %q", got.HeldUnjudged, got.WakeStage, tc.held, tc.wake)
			}
			if tc.held && (got.Detail == "" || got.Reason != tc.batch.Status.GetCondition(v1alpha1.BatchJudged).Reason) {
				t.Errorf("reason %q, message %q", got.Reason, got.Detail)
			}
		})
	}
}
