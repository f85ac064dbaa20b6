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
		return v1alpha1.StageVerdict{Stage: stage, Verdict: word, WithoutRules: withoutRules, Contradicted: contradicted}
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
			if batch, order := tc.settings.UnjudgedBatch(c), tc.settings.UnjudgedOrder(w); batch != tc.batch || order != tc.order {
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
			got := want{s.BatchNoVerdict(pre), s.BatchNoVerdict(post), s.BatchNoVerdict(pre, post), s.OrderNoVerdict(), s.ReleaseNoVerdict()}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
