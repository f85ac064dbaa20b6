package changepod

import (
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// Judges of the tests.
var (
	server   = v1alpha1.Judge{Name: v1alpha1.JudgeServer}
	byMetric = v1alpha1.Judge{Name: v1alpha1.JudgeMetrics, TimeoutSeconds: 420, NoVerdict: v1alpha1.NoVerdictHold}
	canary   = v1alpha1.Judge{Name: "canary"}
)

func optional(j v1alpha1.Judge) v1alpha1.Judge { j.Optional = true; return j }

func silent(j v1alpha1.Judge, p v1alpha1.NoVerdictPolicy) v1alpha1.Judge { j.NoVerdict = p; return j }

// judgedBy returns a batch with judges.
func judgedBy(judges []v1alpha1.Judge, facts ...func(*v1alpha1.ChangePodStatus)) *v1alpha1.ChangePod {
	c := batch(facts...)
	c.Spec.Judges = judges
	return c
}

// says is the verdict of a judge other than the server.
func says(judge, word string) func(*v1alpha1.ChangePodStatus) {
	return func(s *v1alpha1.ChangePodStatus) {
		s.Judges = append(s.Judges, v1alpha1.JudgeVerdict{Judge: judge, Stage: v1alpha1.StagePost, Verdict: word, Message: word + " of " + judge, Time: metav1.NewMicroTime(t0)})
	}
}

func TestABatchWithOtherJudgesEndsWhenThoseWhoMustAnswerDid(t *testing.T) {
	const (
		pre, post  = v1alpha1.StagePre, v1alpha1.StagePost
		doneIt     = v1alpha1.BatchExecuteDone
		pass, fail = "pass", "fail"
		pending    = v1alpha1.OutcomePending
	)
	passed := []func(*v1alpha1.ChangePodStatus){submission(pre, true), verdict(pre, pass), submission(post, true), verdict(post, pass)}
	with := func(more ...func(*v1alpha1.ChangePodStatus)) []func(*v1alpha1.ChangePodStatus) {
		return append(append([]func(*v1alpha1.ChangePodStatus){}, passed...), more...)
	}
	only := []v1alpha1.Judge{byMetric}
	both := []v1alpha1.Judge{byMetric, server}
	type want struct {
		Phase, Message v1alpha1.BatchPhase
		Wake           v1alpha1.Stage // of the server
		Judges         string         // that are woken
		Outcome        v1alpha1.Outcome
		Held           bool
	}
	for name, tc := range map[string]struct {
		batch       *v1alpha1.ChangePod
		after       time.Duration
		noServer    bool
		superseded  bool
		decideSince time.Duration
		want        want
	}{
		"without a server a judge keeps it open": {batch: judgedBy(only), noServer: true,
			want: want{v1alpha1.BatchPostSubmitted, "", "", "metrics", pending, false}},
		"the judge passes it": {batch: judgedBy(only, says("metrics", pass)), noServer: true,
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomePass, false}},
		"the judge fails it": {batch: judgedBy(only, says("metrics", fail)), noServer: true,
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeFail, false}},
		"the judge has no verdict": {batch: judgedBy(only, says("metrics", "none")), noServer: true,
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeNoVerdict, false}},
		"its time is that of its analysis and the grace, not post-timeout": {batch: judgedBy(only), after: 419 * time.Second, noServer: true,
			want: want{v1alpha1.BatchPostSubmitted, "", "", "metrics", pending, false}},
		"a judge that did not answer holds it, and is woken": {batch: judgedBy(only), after: 420 * time.Second, noServer: true,
			want: want{v1alpha1.BatchPostSubmitted, "", "", "metrics", pending, true}},
		"a late pass ends the hold": {batch: judgedBy(only, says("metrics", pass)), after: time.Hour, noServer: true,
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomePass, false}},
		"a judge that did not answer, policy Pass": {batch: judgedBy([]v1alpha1.Judge{silent(byMetric, v1alpha1.NoVerdictPass)}), after: 420 * time.Second, noServer: true,
			want: want{doneIt, v1alpha1.BatchPostTimeout, "", "", v1alpha1.OutcomeNoVerdict, false}},
		"a judge that did not answer, policy Fail": {batch: judgedBy([]v1alpha1.Judge{silent(byMetric, v1alpha1.NoVerdictFail)}), after: 420 * time.Second, noServer: true,
			want: want{doneIt, v1alpha1.BatchPostTimeout, "", "", v1alpha1.OutcomeNoVerdict, false}},
		"a batch that timed out does not begin again in a new process": {batch: judgedBy([]v1alpha1.Judge{silent(byMetric, v1alpha1.NoVerdictPass)}, ended(v1alpha1.BatchPostTimeout)),
			after: time.Hour, decideSince: time.Hour, noServer: true,
			want: want{doneIt, v1alpha1.BatchPostTimeout, "", "", v1alpha1.OutcomeNoVerdict, false}},
		"a new process gives the judge time": {batch: judgedBy(only), after: time.Hour, decideSince: time.Hour - time.Second, noServer: true,
			want: want{v1alpha1.BatchPostSubmitted, "", "", "metrics", pending, false}},
		"a new batch is started at the server, and the judge is woken": {batch: judgedBy(both),
			want: want{v1alpha1.BatchPreWait, "", pre, "metrics", pending, false}},
		"a pass of the server waits for the judge": {batch: judgedBy(both, with()...),
			want: want{v1alpha1.BatchPostSubmitted, "", "", "metrics", pending, false}},
		"a pass of the judge waits for the server": {batch: judgedBy(both, submission(pre, true), says("metrics", pass)), after: time.Second,
			want: want{v1alpha1.BatchPreSubmitted, "", pre, "", pending, false}},
		"both pass it": {batch: judgedBy(both, with(says("metrics", pass))...),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomePass, false}},
		"a fail of the judge counts against a pass of the server": {batch: judgedBy(both, with(says("metrics", fail))...),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeFail, false}},
		"a fail of the judge does not wait for the server": {batch: judgedBy(both, says("metrics", fail)),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeFail, false}},
		"a fail of the server counts against a pass of the judge": {batch: judgedBy(both, verdict(pre, pass), verdict(post, fail), says("metrics", pass)),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeFail, false}},
		"a fail of the server does not wait for the judge": {batch: judgedBy(both, submission(pre, true), verdict(pre, fail)),
			want: want{doneIt, v1alpha1.BatchPreFailed, "", "", v1alpha1.OutcomeFail, false}},
		"the server passes, the judge has no verdict": {batch: judgedBy(both, with(says("metrics", "none"))...),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeNoVerdict, false}},
		"the judge passes, the server did not answer": {batch: judgedBy(both, submission(pre, true), says("metrics", pass)), after: 135 * time.Second,
			want: want{doneIt, v1alpha1.BatchPreTimeout, "", "", v1alpha1.OutcomeNoVerdict, false}},
		"an optional server is not waited for": {batch: judgedBy([]v1alpha1.Judge{byMetric, optional(server)}, submission(pre, true), says("metrics", pass)),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomePass, false}},
		"a fail of an optional server counts": {batch: judgedBy([]v1alpha1.Judge{byMetric, optional(server)}, submission(pre, true), verdict(pre, fail), says("metrics", pass)),
			want: want{doneIt, v1alpha1.BatchPreFailed, "", "", v1alpha1.OutcomeFail, false}},
		"an optional judge is not waited for, and still looks": {batch: judgedBy([]v1alpha1.Judge{optional(byMetric), server}, with()...),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "metrics", v1alpha1.OutcomePass, false}},
		"a late fail of an optional judge counts": {batch: judgedBy([]v1alpha1.Judge{optional(byMetric), server}, with(ended(v1alpha1.BatchPostFinish), says("metrics", fail))...),
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeFail, false}},
		"another judge has the time of post-timeout": {batch: judgedBy([]v1alpha1.Judge{canary}), after: 120 * time.Second, noServer: true,
			want: want{doneIt, v1alpha1.BatchPostTimeout, "", "", v1alpha1.OutcomeNoVerdict, false}},
		"every judge must pass it": {batch: judgedBy([]v1alpha1.Judge{byMetric, canary}, says("canary", pass)), noServer: true,
			want: want{v1alpha1.BatchPostSubmitted, "", "", "metrics", pending, false}},
		"a person passes it": {batch: judgedBy(only, says("metrics", fail), person(pass)), noServer: true,
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomePass, false}},
		"a person fails it": {batch: judgedBy(only, says("metrics", pass), person("unpass")), noServer: true,
			want: want{doneIt, v1alpha1.BatchPostFinish, "", "", v1alpha1.OutcomeFail, false}},
		"it continues when the verdict of a person is removed": {batch: judgedBy(only, ended(v1alpha1.BatchPostFinish)), noServer: true,
			want: want{v1alpha1.BatchPostSubmitted, "", "", "metrics", pending, false}},
		"a newer template ends the wait": {batch: judgedBy(only), noServer: true, superseded: true,
			want: want{doneIt, v1alpha1.BatchPostTimeout, "", "", v1alpha1.OutcomeNoVerdict, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings.Default()
			now := t0.Add(tc.after)
			in := Input{Now: now, Settings: s, ServerConfigured: !tc.noServer, Superseded: tc.superseded, ChangePod: tc.batch}
			if tc.decideSince > 0 {
				in.DecidingSince = t0.Add(tc.decideSince)
			}
			d := Decide(in)
			next, _ := derive(tc.batch, d, s, now)
			outcome, _ := next.OutcomeOf("p1")
			got := want{d.Phase, d.Message, d.WakeStage, strings.Join(d.WakeJudges, ","), outcome, d.HeldUnjudged}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d.Phase != doneIt && !d.HeldUnjudged && d.Deadline.IsZero() && d.WakeStage == "" {
				t.Error("an open batch has no deadline")
			}
		})
	}
}

func TestTheSilenceOfAJudgeFollowsItsMetricCheck(t *testing.T) {
	for policy, want := range map[v1alpha1.NoVerdictPolicy]string{
		v1alpha1.NoVerdictPass: "True", v1alpha1.NoVerdictHold: "Unknown", v1alpha1.NoVerdictFail: "False",
	} {
		for name, facts := range map[string][]func(*v1alpha1.ChangePodStatus){
			"too little data": {says("metrics", "none")},
			"no answer":       nil,
		} {
			t.Run(string(policy)+", "+name, func(t *testing.T) {
				s := settings.Default() // no-verdict is Pass, which does not count here
				c := judgedBy([]v1alpha1.Judge{silent(byMetric, policy)}, facts...)
				now := t0.Add(time.Hour)
				next, _ := derive(c, Decide(Input{Now: now, Settings: s, ChangePod: c}), s, now)
				if cond := next.Status.GetCondition(apis.ConditionSucceeded); string(cond.Status) != want {
					t.Errorf("condition Succeeded is %+v, want %s", cond, want)
				}
				if cond := next.Status.GetCondition(v1alpha1.BatchJudged); !cond.IsFalse() {
					t.Errorf("condition Judged is %+v", cond)
				}
				if got := s.RuleOfBatch(next).Policy; got != policy {
					t.Errorf("policy %s", got)
				}
			})
		}
	}
}

func TestTheConditionsExplainWhatAJudgeSaw(t *testing.T) {
	const seen = "Prometheus did not answer: connection refused"
	record := func(s *v1alpha1.ChangePodStatus) {
		s.MetricRecord = &judgev1alpha1.Record{Verdict: judgev1alpha1.VerdictNone, Message: seen}
	}
	for name, tc := range map[string]struct {
		batch *v1alpha1.ChangePod
		want  string
	}{
		"a fail":               {judgedBy([]v1alpha1.Judge{byMetric}, says("metrics", "fail")), "metrics: fail of metrics"},
		"no verdict":           {judgedBy([]v1alpha1.Judge{byMetric}, says("metrics", "none")), "metrics: none of metrics"},
		"no answer in time":    {judgedBy([]v1alpha1.Judge{byMetric}, record), seen},
		"the judge is missing": {judgedBy([]v1alpha1.Judge{byMetric}), "did not analyze the metrics"},
		"another judge":        {judgedBy([]v1alpha1.Judge{silent(canary, v1alpha1.NoVerdictHold)}), "judge canary gave no verdict in time"},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := settings.Default(), t0.Add(time.Hour)
			next, _ := derive(tc.batch, Decide(Input{Now: now, Settings: s, ChangePod: tc.batch}), s, now)
			if cond := next.Status.GetCondition(apis.ConditionSucceeded); !strings.Contains(cond.Message, tc.want) {
				t.Errorf("message %q, want %q", cond.Message, tc.want)
			}
		})
	}
}
