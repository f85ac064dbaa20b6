package changepod

import (
	"strings"
	"testing"
	"time"

	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

func TestTheConditionNamesTheSettingThatDecidesAnUnjudgedBatch(t *testing.T) {
	const hold, fail = v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail
	ofStages := func(pre, post v1alpha1.NoVerdictPolicy) func(*settings.Settings) {
		return func(s *settings.Settings) { s.NoVerdictPre, s.NoVerdictPost = pre, post }
	}
	metrics := judgedBy([]v1alpha1.Judge{{Name: v1alpha1.JudgeMetrics, NoVerdict: hold}})
	timedOut := batch(submission(v1alpha1.StagePre, true))
	for name, tc := range map[string]struct {
		batch *v1alpha1.ChangePod
		edit  func(*settings.Settings)
		want  string
	}{
		"passed by default":              {timedOut, ofStages("", ""), "the batch is unjudged and no-verdict is Pass"},
		"failed by stage PRE":            {timedOut, ofStages(fail, ""), "the batch is unjudged and no-verdict-pre is Fail"},
		"held by stage POST":             {timedOut, ofStages("", hold), "the batch is unjudged and no-verdict-post is Hold; it waits for a late verdict or a person"},
		"held because no call was taken": {batch(submission(v1alpha1.StagePre, false)), ofStages(hold, ""), "the batch is unjudged and no-verdict-pre is Hold; calls to the server are retried"},
		"held by a MetricCheck":          {metrics, ofStages("", ""), "the batch is unjudged and insufficientDataPolicy of the MetricCheck is Hold: "},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := settings.Default(), t0.Add(time.Hour)
			tc.edit(&s)
			next, _ := derive(tc.batch, Decide(Input{Now: now, Settings: s, ServerConfigured: true, ChangePod: tc.batch}), s, now)
			if cond := next.Status.GetCondition(apis.ConditionSucceeded); !strings.HasPrefix(cond.Message, tc.want) {
				t.Errorf("message %q, want %q", cond.Message, tc.want)
			}
		})
	}
}
