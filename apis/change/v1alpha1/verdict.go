package v1alpha1

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is the effect of a verdict.
type Outcome string

// The outcomes.
const (
	// OutcomePending means that the verdict is missing or not confirmed so far.
	OutcomePending Outcome = "Pending"
	OutcomePass    Outcome = "Pass"
	OutcomeFail    Outcome = "Fail"
	// OutcomeNoVerdict means unjudged: the no-verdict policy decides.
	OutcomeNoVerdict Outcome = "NoVerdict"
)

// ParseVerdict returns the outcome of a verdict of the server or a person: "pass" is a
// pass, "fail" and "unpass" are a fail, and anything else ("none", "inconc", the empty
// string, values of later servers) is no verdict. Case and surrounding space are
// ignored.
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

// Precedence orders the verdicts of a stage: a verdict replaces only one of a lower
// precedence, so duplicate, late and reordered deliveries lead to the same status.
type Precedence int

// The precedences.
const (
	PrecedenceMissing Precedence = iota
	// PrecedenceNoVerdict is that of a value that is neither pass nor fail.
	PrecedenceNoVerdict
	// PrecedenceUnconfirmedPass is that of a pass without rules that a retrieve did not
	// confirm.
	PrecedenceUnconfirmedPass
	PrecedencePass
	PrecedenceFail
)

// PrecedenceOf returns the precedence of a verdict. withoutRules applies only to a pass.
func PrecedenceOf(verdict string, withoutRules bool) Precedence {
	switch outcome := ParseVerdict(verdict); {
	case outcome == OutcomeFail:
		return PrecedenceFail
	case outcome == OutcomePass && withoutRules:
		return PrecedenceUnconfirmedPass
	case outcome == OutcomePass:
		return PrecedencePass
	default:
		return PrecedenceNoVerdict
	}
}

// Precedence returns the precedence of a stored verdict; nil is a missing one.
func (v *StageVerdict) Precedence() Precedence {
	if v == nil {
		return PrecedenceMissing
	}
	return PrecedenceOf(v.Verdict, v.UnconfirmedPass)
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

// VerdictOf returns the stage's verdict, or nil.
func (s *ChangePodStatus) VerdictOf(stage Stage) *StageVerdict { return VerdictOf(s.Verdicts, stage) }

// SubmissionOf returns the stage's submission, or nil.
func (s *ChangePodStatus) SubmissionOf(stage Stage) *Submission {
	return SubmissionOf(s.Submissions, stage)
}

// Unconfirmed reports whether the verdict is a pass without rules that no retrieve has
// confirmed. The server sends it also for a check that runs, timed out or crashed.
func (v *StageVerdict) Unconfirmed() bool {
	return v != nil && v.UnconfirmedPass && ParseVerdict(v.Verdict) == OutcomePass
}

// IsContradicted reports whether the verdict is unconfirmed and the server answered a
// retrieve with something other than pass.
func (v *StageVerdict) IsContradicted() bool { return v.Unconfirmed() && v.Contradicted }

// UnconfirmedDetail is the message of an unconfirmed verdict at the timeout of its stage.
func (v *StageVerdict) UnconfirmedDetail(timeout time.Duration) string {
	detail := fmt.Sprintf("the server called back a %s pass without rules, and did not answer retrieve within %s", v.Stage, timeout)
	if v.Contradicted {
		limit := map[Stage]string{StagePre: "preCheckTimeout", StagePost: "postCheckTimeout"}[v.Stage]
		detail = fmt.Sprintf("the server called back a %s pass without rules, but retrieve did not return pass within %s: the check failed, crashed, "+
			"or exceeded %s of the change scene, which may have to be raised", v.Stage, timeout, limit)
	}
	return detail
}

// EndsStage reports whether the verdict ends its stage: every verdict does, except an
// unconfirmed pass.
func (v *StageVerdict) EndsStage() bool { return v != nil && !v.Unconfirmed() }

// Outcome returns the outcome of the verdict. An unconfirmed verdict is pending: the
// timeout of its stage ends it.
func (v *StageVerdict) Outcome() Outcome {
	if !v.EndsStage() {
		return OutcomePending
	}
	return ParseVerdict(v.Verdict)
}

// UnjudgedMessage is the message of an unjudged pod. It differs from that of a failed check,
// which is sticky. It is stored and read back, so it never changes: formerUnjudgedMessage is
// that of earlier versions.
const (
	UnjudgedMessage       = "no judge gave a verdict"
	formerUnjudgedMessage = "nobody judged"
)

// Unjudged reports whether a pod that counts as failed has no verdict: a setting such as
// no-verdict is Fail.
func (p *PodSummary) Unjudged() bool {
	return p.Message == UnjudgedMessage || p.Message == formerUnjudgedMessage
}

// Failure says why a pod counts as failed.
func (p *PodSummary) Failure() string {
	if p.Unjudged() {
		return "pod " + p.Pod + " counts as failed: " + p.Message
	}
	return strings.TrimSuffix("pod "+p.Pod+" failed its check: "+p.Message, ": ")
}

// UnjudgedStages returns the stages of the batch without a pass or fail: both, if the
// batch ended in stage PRE without a verdict.
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

// ResultOf returns the result of a single pod, or nil.
func (s *ChangePodStatus) ResultOf(pod string) *PodSummary {
	for i := range s.PodResults {
		if s.PodResults[i].Pod == pod {
			return &s.PodResults[i]
		}
	}
	return nil
}

// JudgedByPerson reports whether a person decided the batch: failed at least one pod, or
// passed all of them.
func (c *ChangePod) JudgedByPerson() bool {
	passed := 0
	for i := range c.Spec.PodInfos {
		r := c.Status.ResultOf(c.Spec.PodInfos[i].Pod)
		if r == nil || r.Source != "" {
			continue
		}
		switch ParseVerdict(r.Verdict) {
		case OutcomeFail:
			return true
		case OutcomePass:
			passed++
		}
	}
	return passed > 0 && passed == len(c.Spec.PodInfos)
}

// VerdictWithdrawn reports whether the batch ended by a person's verdict that was
// removed since. Such a batch is not done: the other pods were never judged.
func (c *ChangePod) VerdictWithdrawn() bool {
	return c.Status.Message == string(BatchPostFinish) && !c.answered() && !c.JudgedByPerson()
}

// OutcomeOf returns the outcome of one pod of the batch, and its message. A person's
// verdict takes precedence over those of judges, a verdict of the pod over one of the
// batch, and a fail of one stage or judge over a pass of another. A pass of PRE alone is
// no pass, nor is a pass of one judge while another one must answer.
func (c *ChangePod) OutcomeOf(pod string) (outcome Outcome, message string) {
	outcome, message = c.serverOutcomeOf(pod)
	if len(c.Spec.Judges) == 0 && len(c.Status.Judges) == 0 {
		return outcome, message
	}
	if r := c.Status.ResultOf(pod); r != nil && r.Source == "" && ParseVerdict(r.Verdict) != OutcomeNoVerdict {
		return outcome, message
	}
	failed := c.Status.FailOfJudge()
	switch {
	case outcome == OutcomeFail:
		return outcome, message
	case failed != nil:
		return OutcomeFail, failed.Detail()
	case c.ServerMustAnswer() && outcome != OutcomePass:
		return outcome, message
	case len(c.UnjudgedBy()) > 0:
		return c.withoutVerdict(), ""
	default:
		return OutcomePass, c.passDetail(message)
	}
}

// serverOutcomeOf is OutcomeOf for the server and persons alone.
func (c *ChangePod) serverOutcomeOf(pod string) (outcome Outcome, message string) {
	if r := c.Status.ResultOf(pod); r != nil {
		// A result that is neither pass nor fail is ignored.
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
	return c.withoutVerdict(), ""
}

// withoutVerdict is the outcome of a pod that no verdict decides.
func (c *ChangePod) withoutVerdict() Outcome {
	if c.Status.Phase == BatchExecuteDone && !c.VerdictWithdrawn() {
		return OutcomeNoVerdict
	}
	return OutcomePending
}
