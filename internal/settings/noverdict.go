package settings

import (
	"cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// insufficientData is the field of a MetricCheck that decides if judge metrics gives no verdict.
const insufficientData v1alpha1.ConfigType = "insufficientDataPolicy of the MetricCheck"

// Rule is what something unjudged counts as, and the setting that says so: the type of an
// OpsConfigInfo, or the field of a MetricCheck.
type Rule struct {
	Policy  v1alpha1.NoVerdictPolicy
	Setting v1alpha1.ConfigType
}

// String is the rule in messages.
func (r Rule) String() string { return string(r.Setting) + " is " + string(r.Policy) }

// RuleOfBatch returns the rule of an unjudged batch: the strictest rule of the stages without
// a pass or fail. If both stages have a pass or fail, it is the strictest rule of both stages. If the
// batch has judges other than the server, only the judges that must answer count.
func (s Settings) RuleOfBatch(c *v1alpha1.ChangePod) Rule {
	if len(c.Spec.Judges) > 0 {
		return s.ruleOfJudges(c)
	}
	if unjudged := s.rulesOfStages(c); len(unjudged) > 0 {
		return strictest(unjudged...)
	}
	return s.ruleOfBoth()
}

// ruleOfJudges is RuleOfBatch for a batch with judges other than the server.
func (s Settings) ruleOfJudges(c *v1alpha1.ChangePod) Rule {
	var rules []Rule
	for _, j := range c.UnjudgedBy() {
		rules = append(rules, s.RuleOfJudge(j))
	}
	if c.ServerMustAnswer() && c.Status.VerdictOf(v1alpha1.StagePost).Outcome() != v1alpha1.OutcomePass {
		rules = append(rules, s.rulesOfStages(c)...)
	}
	return strictest(append(rules, Rule{v1alpha1.NoVerdictPass, v1alpha1.ConfigNoVerdict})...)
}

// rulesOfStages returns the rules of the stages of a batch without a pass or fail.
func (s Settings) rulesOfStages(c *v1alpha1.ChangePod) []Rule {
	var rules []Rule
	for _, stage := range c.UnjudgedStages() {
		rules = append(rules, s.RuleOfStage(stage, c.Status.VerdictOf(stage)))
	}
	return rules
}

// RuleOfJudge returns the rule of a batch without a verdict of a judge other than the server.
func (s Settings) RuleOfJudge(j v1alpha1.Judge) Rule {
	if j.NoVerdict != "" { // only judge metrics has it
		return Rule{j.NoVerdict, insufficientData}
	}
	return s.RuleOfStage(v1alpha1.StagePost, nil)
}

// RuleOfStage returns the rule of an unjudged stage of a batch. v is the verdict that is stored
// for the stage, or nil; a contradicted pass has a rule of its own.
func (s Settings) RuleOfStage(stage v1alpha1.Stage, v *v1alpha1.StageVerdict) Rule {
	switch {
	case v.IsContradicted():
		return Rule{s.NoVerdictContradicted, v1alpha1.ConfigNoVerdictContradicted}
	case stage == v1alpha1.StagePre:
		return s.override(s.NoVerdictPre, v1alpha1.ConfigNoVerdictPre)
	default:
		return s.override(s.NoVerdictPost, v1alpha1.ConfigNoVerdictPost)
	}
}

// RuleOfOrder returns the rule of a release whose order as a whole is unjudged.
func (s Settings) RuleOfOrder(c *v1alpha1.ChangeWorkload) Rule {
	if c.Status.OrderContradicted() {
		return Rule{s.NoVerdictContradicted, v1alpha1.ConfigNoVerdictContradicted}
	}
	return s.override(s.NoVerdictOrder, v1alpha1.ConfigNoVerdictOrder)
}

// PolicyOfUnacceptedOrder returns the policy for a release whose order the server did
// not accept: neither the order nor any of its batches is judged.
func (s Settings) PolicyOfUnacceptedOrder() v1alpha1.NoVerdictPolicy {
	return strictest(s.ruleOfBoth(), s.override(s.NoVerdictOrder, v1alpha1.ConfigNoVerdictOrder)).Policy
}

// ruleOfBoth is the rule of a batch without any verdict.
func (s Settings) ruleOfBoth() Rule {
	return strictest(s.RuleOfStage(v1alpha1.StagePre, nil), s.RuleOfStage(v1alpha1.StagePost, nil))
}

// override returns the rule of a setting that is no-verdict if it is not set.
func (s Settings) override(policy v1alpha1.NoVerdictPolicy, setting v1alpha1.ConfigType) Rule {
	if policy == "" {
		return Rule{cmp.Or(s.NoVerdict, v1alpha1.NoVerdictPass), v1alpha1.ConfigNoVerdict}
	}
	return Rule{policy, setting}
}

// strictest returns the first of the strictest rules.
func strictest(rules ...Rule) Rule {
	for _, p := range []v1alpha1.NoVerdictPolicy{v1alpha1.NoVerdictFail, v1alpha1.NoVerdictHold} {
		for _, r := range rules {
			if r.Policy == p {
				return r
			}
		}
	}
	return Rule{v1alpha1.NoVerdictPass, rules[0].Setting}
}
