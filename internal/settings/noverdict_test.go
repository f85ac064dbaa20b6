package settings

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestAContradictedPassHasAPolicyOfItsOwn(t *testing.T) {
	const pass, hold, fail = v1alpha1.NoVerdictPass, v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail
	const pre, post = v1alpha1.StagePre, v1alpha1.StagePost
	verdict := func(stage v1alpha1.Stage, word string, withoutRules, contradicted bool) v1alpha1.StageVerdict {
		return v1alpha1.StageVerdict{Stage: stage, Verdict: word, UnconfirmedPass: withoutRules, Contradicted: contradicted}
	}
	all := Settings{NoVerdict: fail, NoVerdictPre: fail, NoVerdictPost: fail, NoVerdictOrder: fail, NoVerdictContradicted: pass}
	byDefault := Default()
	for name, tc := range map[string]struct {
		settings     Settings
		verdicts     []v1alpha1.StageVerdict
		batch, order v1alpha1.NoVerdictPolicy
	}{
		"no verdict":                           {byDefault, nil, pass, pass},
		"not confirmed":                        {byDefault, []v1alpha1.StageVerdict{verdict(pre, "pass", false, false), verdict(post, "pass", true, false)}, pass, pass},
		"contradicted":                         {byDefault, []v1alpha1.StageVerdict{verdict(pre, "pass", false, false), verdict(post, "pass", true, true)}, hold, hold},
		"contradicted, stricter no-verdict":    {all, []v1alpha1.StageVerdict{verdict(pre, "pass", false, false), verdict(post, "pass", true, true)}, pass, pass},
		"contradicted in PRE alone":            {byDefault, []v1alpha1.StageVerdict{verdict(pre, "pass", true, true)}, hold, hold},
		"contradicted in PRE, no POST verdict": {all, []v1alpha1.StageVerdict{verdict(pre, "pass", true, true)}, fail, pass},
		"contradicted, then a fail":            {byDefault, []v1alpha1.StageVerdict{verdict(pre, "fail", true, true)}, pass, pass},
	} {
		t.Run(name, func(t *testing.T) {
			c := &v1alpha1.ChangePod{Status: v1alpha1.ChangePodStatus{Verdicts: tc.verdicts}}
			w := &v1alpha1.ChangeWorkload{Status: v1alpha1.ChangeWorkloadStatus{OrderVerdicts: tc.verdicts, Order: &v1alpha1.Order{}}}
			if len(tc.verdicts) == 2 {
				w.Status.Order.Submissions = []v1alpha1.Submission{{Stage: pre}, {Stage: post}}
			}
			if batch, order := tc.settings.RuleOfBatch(c).Policy, tc.settings.RuleOfOrder(w).Policy; batch != tc.batch || order != tc.order {
				t.Errorf("batch %s, order %s; want %s and %s", batch, order, tc.batch, tc.order)
			}
		})
	}
}

func TestThePolicyOfAStageOverridesTheGeneralOne(t *testing.T) {
	const pass, hold, fail = v1alpha1.NoVerdictPass, v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail
	const pre, post = v1alpha1.StagePre, v1alpha1.StagePost
	type want struct{ pre, post, both, order, release v1alpha1.NoVerdictPolicy }
	for name, tc := range map[string]struct {
		configured map[v1alpha1.ConfigType]string
		want       want
	}{
		"nothing is configured":      {nil, want{pass, pass, pass, pass, pass}},
		"all stages":                 {map[v1alpha1.ConfigType]string{"no-verdict": "Hold"}, want{hold, hold, hold, hold, hold}},
		"only PRE":                   {map[v1alpha1.ConfigType]string{"no-verdict-pre": "Fail"}, want{fail, pass, fail, pass, fail}},
		"only POST":                  {map[v1alpha1.ConfigType]string{"no-verdict-post": "Hold"}, want{pass, hold, hold, pass, hold}},
		"only the order":             {map[v1alpha1.ConfigType]string{"no-verdict-order": "Hold"}, want{pass, pass, pass, hold, hold}},
		"a stage may be less strict": {map[v1alpha1.ConfigType]string{"no-verdict": "Fail", "no-verdict-post": "Pass"}, want{fail, pass, fail, fail, fail}},
		"invalid content":            {map[v1alpha1.ConfigType]string{"no-verdict-pre": "maybe"}, want{pass, pass, pass, pass, pass}},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []*v1alpha1.OpsConfigInfo
			for kind, content := range tc.configured {
				objects = append(objects, &v1alpha1.OpsConfigInfo{
					ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: string(kind)},
					Spec:       v1alpha1.OpsConfigInfoSpec{Type: kind, Content: content, Enable: true},
				})
			}
			s := FromObjects(objects)
			both := &v1alpha1.ChangePod{}
			got := want{s.RuleOfStage(pre, nil).Policy, s.RuleOfStage(post, nil).Policy, s.RuleOfBatch(both).Policy, s.RuleOfOrder(&v1alpha1.ChangeWorkload{}).Policy, s.PolicyOfUnacceptedOrder()}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTheRuleNamesTheSettingThatDecides(t *testing.T) {
	const pass, hold, fail = v1alpha1.NoVerdictPass, v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail
	prePassed := v1alpha1.StageVerdict{Stage: v1alpha1.StagePre, Verdict: "pass"}
	contradicted := v1alpha1.StageVerdict{Stage: v1alpha1.StagePost, Verdict: "pass", UnconfirmedPass: true, Contradicted: true}
	metrics, server, canary := v1alpha1.Judge{Name: v1alpha1.JudgeMetrics, NoVerdict: hold}, v1alpha1.Judge{Name: v1alpha1.JudgeServer}, v1alpha1.Judge{Name: "canary"}
	for name, tc := range map[string]struct {
		edit         func(*Settings)
		verdicts     []v1alpha1.StageVerdict
		judges       []v1alpha1.Judge
		batch, order string
	}{
		"nothing is configured":    {batch: "no-verdict is Pass", order: "no-verdict is Pass"},
		"the general policy":       {edit: func(s *Settings) { s.NoVerdict = fail }, batch: "no-verdict is Fail", order: "no-verdict is Fail"},
		"stage PRE":                {edit: func(s *Settings) { s.NoVerdictPre = fail }, batch: "no-verdict-pre is Fail", order: "no-verdict is Pass"},
		"stage POST":               {edit: func(s *Settings) { s.NoVerdictPost = hold }, batch: "no-verdict-post is Hold", order: "no-verdict is Pass"},
		"a stage is less strict":   {edit: func(s *Settings) { s.NoVerdict, s.NoVerdictPre = hold, pass }, batch: "no-verdict is Hold", order: "no-verdict is Hold"},
		"only the unjudged stage":  {edit: func(s *Settings) { s.NoVerdictPre, s.NoVerdictPost = fail, hold }, verdicts: []v1alpha1.StageVerdict{prePassed}, batch: "no-verdict-post is Hold", order: "no-verdict is Pass"},
		"the order":                {edit: func(s *Settings) { s.NoVerdictOrder = hold }, batch: "no-verdict is Pass", order: "no-verdict-order is Hold"},
		"a contradicted pass":      {verdicts: []v1alpha1.StageVerdict{prePassed, contradicted}, batch: "no-verdict-contradicted is Hold", order: "no-verdict-contradicted is Hold"},
		"a stricter one beside it": {edit: func(s *Settings) { s.NoVerdictPre = fail }, verdicts: []v1alpha1.StageVerdict{contradicted}, batch: "no-verdict-pre is Fail", order: "no-verdict-contradicted is Hold"},
		"judge metrics":            {judges: []v1alpha1.Judge{metrics}, batch: "insufficientDataPolicy of the MetricCheck is Hold", order: "no-verdict is Pass"},
		"the server beside it":     {edit: func(s *Settings) { s.NoVerdict = fail }, judges: []v1alpha1.Judge{metrics, server}, batch: "no-verdict is Fail", order: "no-verdict is Fail"},
		"another judge":            {edit: func(s *Settings) { s.NoVerdictPost = hold }, judges: []v1alpha1.Judge{canary}, batch: "no-verdict-post is Hold", order: "no-verdict is Pass"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Default()
			if tc.edit != nil {
				tc.edit(&s)
			}
			c := &v1alpha1.ChangePod{Spec: v1alpha1.ChangePodSpec{Judges: tc.judges}, Status: v1alpha1.ChangePodStatus{Verdicts: tc.verdicts}}
			w := &v1alpha1.ChangeWorkload{Status: v1alpha1.ChangeWorkloadStatus{OrderVerdicts: tc.verdicts, Order: &v1alpha1.Order{
				Submissions: []v1alpha1.Submission{{Stage: v1alpha1.StagePre}, {Stage: v1alpha1.StagePost}}}}}
			if batch, order := s.RuleOfBatch(c).String(), s.RuleOfOrder(w).String(); batch != tc.batch || order != tc.order {
				t.Errorf("batch: %s, order: %s; want %s, %s", batch, order, tc.batch, tc.order)
			}
		})
	}
}
