package changepod

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/batchstatus"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// Function verdict stores the end of a batch with the verdict.
func TestTheEndThatIsStoredWithAVerdictIsTheOneThatTheReconcilerDerives(t *testing.T) {
	const pre, post = v1alpha1.StagePre, v1alpha1.StagePost
	now := time.Date(2026, 5, 9, 12, 0, 0, 0, time.UTC)
	passed := []v1alpha1.StageVerdict{{Stage: pre, Verdict: "pass"}, {Stage: post, Verdict: "pass", Message: "good"}}
	preFailed := []v1alpha1.StageVerdict{{Stage: pre, Verdict: "unpass", Message: "bad"}}
	unconfirmed := []v1alpha1.StageVerdict{{Stage: pre, Verdict: "pass"}, {Stage: post, Verdict: "pass", UnconfirmedPass: true}}
	both := []v1alpha1.Judge{{Name: v1alpha1.JudgeServer}, {Name: v1alpha1.JudgeMetrics}}
	for name, tc := range map[string]struct {
		verdicts []v1alpha1.StageVerdict
		judges   []v1alpha1.Judge
		answers  []v1alpha1.JudgeVerdict
		results  []v1alpha1.PodSummary
		ends     bool
	}{
		"POST passed":                    {verdicts: passed, ends: true},
		"POST failed":                    {verdicts: []v1alpha1.StageVerdict{{Stage: pre, Verdict: "pass"}, {Stage: post, Verdict: "fail", Message: "bad"}}, ends: true},
		"PRE failed":                     {verdicts: preFailed, ends: true},
		"only PRE passed":                {verdicts: passed[:1]},
		"POST gave no verdict":           {verdicts: []v1alpha1.StageVerdict{{Stage: pre, Verdict: "pass"}, {Stage: post, Verdict: "inconc"}}},
		"the POST pass is not confirmed": {verdicts: unconfirmed},
		"POST passed, another judge has not answered":   {verdicts: passed, judges: both},
		"POST passed, another judge answered":           {verdicts: passed, judges: both, answers: []v1alpha1.JudgeVerdict{{Judge: v1alpha1.JudgeMetrics, Verdict: "pass"}}},
		"POST passed, an optional judge may still fail": {verdicts: passed, judges: []v1alpha1.Judge{both[0], {Name: v1alpha1.JudgeMetrics, Optional: true}}},
		"PRE failed, a person passed the batch":         {verdicts: preFailed, results: []v1alpha1.PodSummary{{Pod: "a", Verdict: "pass"}, {Pod: "b", Verdict: "pass"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: metav1.NewTime(now)}}
			c.Spec.PodInfos, c.Spec.Judges = []v1alpha1.PodSummary{{Pod: "a"}, {Pod: "b"}}, tc.judges
			c.Status.Verdicts, c.Status.Judges, c.Status.PodResults = tc.verdicts, tc.answers, tc.results
			batchstatus.SetEnd(c, now)
			if ended := c.Status.Phase == v1alpha1.BatchExecuteDone; ended != tc.ends {
				t.Fatalf("ended: %t, want %t", ended, tc.ends)
			}
			if !tc.ends {
				return // the reconciler derives it
			}
			s := settings.Settings{PreTimeout: time.Minute, PostTimeout: time.Minute}
			d := Decide(Input{Now: now.Add(time.Second), Settings: s, ServerConfigured: true, ChangePod: c})
			if next, changed := derive(c, d, s, now.Add(time.Second)); changed {
				t.Errorf("the reconciler writes %+v after %+v", next.Status, c.Status)
			}
		})
	}
}
