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
	// OutcomeNone means that nobody judged: the no-verdict policy decides.
	OutcomeNone Outcome = "NoVerdict"
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
		return OutcomeNone
	}
}

// VerdictOf returns the stage's verdict, or nil.
func (s *ChangePodStatus) VerdictOf(stage Stage) *StageVerdict {
	for i := range s.Verdicts {
		if s.Verdicts[i].Stage == stage {
			return &s.Verdicts[i]
		}
	}
	return nil
}

// SubmissionOf returns the stage's submission, or nil.
func (s *ChangePodStatus) SubmissionOf(stage Stage) *Submission {
	for i := range s.Submissions {
		if s.Submissions[i].Stage == stage {
			return &s.Submissions[i]
		}
	}
	return nil
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
