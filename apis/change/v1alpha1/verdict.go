package v1alpha1

import "strings"

// Outcome is what a verdict counts as.
type Outcome string

// The outcomes.
const (
	// OutcomePending means that a verdict is still waited for.
	OutcomePending Outcome = "Pending"
	OutcomePass    Outcome = "Pass"
	OutcomeFail    Outcome = "Fail"
	// OutcomeNoVerdict means that nobody judged: the no-verdict policy decides.
	OutcomeNoVerdict Outcome = "NoVerdict"
)

// ParseVerdict says what a word of the server or of a person counts as:
// "pass" is a pass, "fail" and "unpass" are a fail, and anything else ("none",
// "inconc", the empty string, a word that a later server may invent) is no
// verdict. Case and surrounding space do not count.
func ParseVerdict(word string) Outcome {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "pass":
		return OutcomePass
	case "fail", "unpass":
		return OutcomeFail
	default:
		return OutcomeNoVerdict
	}
}

// VerdictOf returns the stage's verdict, or nil.
func VerdictOf(verdicts []StageVerdict, stage Stage) *StageVerdict {
	for i := range verdicts {
		if verdicts[i].Stage == stage {
			return &verdicts[i]
		}
	}
	return nil
}

// SubmissionOf returns the stage's submission, or nil.
func SubmissionOf(submissions []Submission, stage Stage) *Submission {
	for i := range submissions {
		if submissions[i].Stage == stage {
			return &submissions[i]
		}
	}
	return nil
}

// VerdictOf returns the stage's verdict, or nil.
func (s *ChangePodStatus) VerdictOf(stage Stage) *StageVerdict { return VerdictOf(s.Verdicts, stage) }

// SubmissionOf returns the stage's submission, or nil.
func (s *ChangePodStatus) SubmissionOf(stage Stage) *Submission {
	return SubmissionOf(s.Submissions, stage)
}

// Outcome is what the verdict counts as.
func (v *StageVerdict) Outcome() Outcome {
	switch {
	case v == nil:
		return OutcomePending
	case v.Unjudged && ParseVerdict(v.Verdict) == OutcomePass:
		return OutcomeNoVerdict
	default:
		return ParseVerdict(v.Verdict)
	}
}

// UnjudgedStages are the stages of the batch of which nobody said pass or
// fail. A batch that ended before its change was judged in neither.
func (c *ChangePod) UnjudgedStages() []Stage {
	var out []Stage
	for _, stage := range []Stage{StagePre, StagePost} {
		switch c.Status.VerdictOf(stage).Outcome() {
		case OutcomePass, OutcomeFail:
		default:
			out = append(out, stage)
		}
	}
	return out
}

// ResultOf returns what was said of a single pod, or nil.
func (s *ChangePodStatus) ResultOf(pod string) *PodSummary {
	for i := range s.PodResults {
		if s.PodResults[i].Pod == pod {
			return &s.PodResults[i]
		}
	}
	return nil
}

// JudgedByPerson says whether a person decided the batch: failed any pod of
// it, or said pass or fail of every one.
func (c *ChangePod) JudgedByPerson() bool {
	said := 0
	for i := range c.Spec.PodInfos {
		r := c.Status.ResultOf(c.Spec.PodInfos[i].Pod)
		if r == nil || r.Source != "" {
			continue
		}
		switch ParseVerdict(r.Verdict) {
		case OutcomeFail:
			return true
		case OutcomePass:
			said++
		}
	}
	return said > 0 && said == len(c.Spec.PodInfos)
}

// VerdictWithdrawn says whether the batch ended by a person's word that is not there
// any more. It is not over then: the pods that the person said nothing of were
// never judged.
func (c *ChangePod) VerdictWithdrawn() bool {
	return c.Status.Message == string(PodPostFinish) && c.Status.VerdictOf(StagePost) == nil && !c.JudgedByPerson()
}

// OutcomeOf says what the facts of the batch count as for one of its pods, and
// why. A person's word counts above the server's, a word about the pod above
// one about its batch, and of the stages a fail counts above a pass. The stage
// PRE alone never makes a pass.
func (c *ChangePod) OutcomeOf(pod string) (outcome Outcome, message string) {
	if r := c.Status.ResultOf(pod); r != nil {
		// A word that is neither pass nor fail leaves the batch's verdict.
		if o := ParseVerdict(r.Verdict); o != OutcomeNoVerdict {
			return o, r.Message
		}
	}
	pre, post := c.Status.VerdictOf(StagePre), c.Status.VerdictOf(StagePost)
	for _, v := range []*StageVerdict{post, pre} {
		if v.Outcome() == OutcomeFail {
			return OutcomeFail, v.Message
		}
	}
	if post.Outcome() == OutcomePass {
		return OutcomePass, post.Message
	}
	if c.Status.Phase == PodExecuteDone && !c.VerdictWithdrawn() {
		return OutcomeNoVerdict, ""
	}
	return OutcomePending, ""
}
