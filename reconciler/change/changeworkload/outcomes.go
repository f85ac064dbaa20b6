package changeworkload

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// PodOutcomes are the pods of a release by outcome.
type PodOutcomes struct {
	// Preparing are pods that are in no ChangePod.
	Preparing []v1alpha1.PodSummary
	// Checking are pods whose outcome is pending.
	Checking []v1alpha1.PodSummary
	// Passed are pods that count as passed.
	Passed []v1alpha1.PodSummary
	// Failed are pods that count as failed, deleted ones included.
	Failed []v1alpha1.PodSummary
	// AnyPassed: a pod that exists has passed, or a deleted pod had passed by a verdict. The pods of a
	// Knative Service count as existing.
	AnyPassed bool
	// Later is how many other pods exist that are not judged.
	Later int
	// PassedUnjudged is how many of Passed are unjudged.
	PassedUnjudged int
	// DeletedUnjudged is how many deleted pods passed and are unjudged.
	DeletedUnjudged int
	// HeldUnjudged is how many of Checking are unjudged.
	HeldUnjudged int
	// HeldContradicted is how many of HeldUnjudged are unjudged because the server
	// contradicts its pass.
	HeldContradicted int
	// HeldDetail says why the first of HeldUnjudged is unjudged, if its batch has other
	// judges than the server.
	HeldDetail string
	// FailedUnjudged is how many of Failed are unjudged.
	FailedUnjudged int
	// PassedBy, HeldBy and FailedBy are the rules by which unjudged pods passed, are held or
	// failed. Unjudged pods of a release that succeeded pass whatever the rule of their batch is.
	PassedBy, HeldBy, FailedBy rules
}

// podOutcomes sorts the pods by outcome. A fail is sticky: it stays after the pod,
// its ChangePod or the verdict was deleted, until a person passes that pod. An
// unjudged pod follows the no-verdict policy.
func podOutcomes(in Input) PodOutcomes {
	t := PodOutcomes{Later: in.Later}
	failed := map[types.UID]v1alpha1.PodSummary{}
	for _, f := range in.ChangeWorkload.Status.DefenseCheckFailPods {
		if !f.Unjudged() {
			failed[f.UID] = f
		}
	}
	present := map[types.UID]bool{}
	for _, p := range in.Pods {
		present[p.UID] = true
	}
	claimed := map[types.UID]bool{}
	for _, c := range in.ChangePods {
		for i := range c.Spec.PodInfos {
			pod := c.Spec.PodInfos[i]
			claimed[pod.UID] = true
			if f, ok := failed[pod.UID]; ok && !hasCurrentOutcome(c, pod.Pod) {
				t.Failed = append(t.Failed, f)
				continue
			}
			t.add(in, c, pod, present[pod.UID] || in.Workload.KnativeService)
		}
	}
	for _, p := range in.Pods {
		if !claimed[p.UID] && (p.Finished || !p.OnNotReadyNode) {
			t.Preparing = append(t.Preparing, p.PodSummary)
		}
	}
	for _, f := range in.ChangeWorkload.Status.DefenseCheckFailPods {
		if !claimed[f.UID] {
			t.Failed = append(t.Failed, f)
		}
	}
	return t
}

// hasCurrentOutcome reports whether the ChangePod has the outcome of a pod that
// failed before: it still fails, or a person passed it.
func hasCurrentOutcome(c *v1alpha1.ChangePod, pod string) bool {
	if r := c.Status.ResultOf(pod); r != nil && r.Source == "" && v1alpha1.ParseVerdict(r.Verdict) == v1alpha1.OutcomePass {
		return true
	}
	outcome, _ := c.OutcomeOf(pod)
	return outcome == v1alpha1.OutcomeFail
}

// noVerdictPolicy is what unjudged pods of a batch count as. A release that ended
// keeps its result: otherwise a stricter policy would suspend every workload that
// ever passed unjudged. That a release was superseded does not mean that its pods passed.
func noVerdictPolicy(in Input, c *v1alpha1.ChangePod) v1alpha1.NoVerdictPolicy {
	policy := in.Settings.RuleOfBatch(c).Policy
	switch {
	case in.ChangeWorkload.Status.Phase == v1alpha1.ReleaseSuccess:
		return v1alpha1.NoVerdictPass
	case ended(in.ChangeWorkload) && policy == v1alpha1.NoVerdictFail:
		return v1alpha1.NoVerdictHold
	default:
		return policy
	}
}

// add sorts one claimed pod.
func (t *PodOutcomes) add(in Input, c *v1alpha1.ChangePod, pod v1alpha1.PodSummary, present bool) {
	outcome, message := c.OutcomeOf(pod.Pod)
	pod.Message = message
	unjudged := outcome == v1alpha1.OutcomeNoVerdict
	if unjudged {
		pod.Message = v1alpha1.UnjudgedMessage
		switch noVerdictPolicy(in, c) {
		case v1alpha1.NoVerdictFail:
			outcome = v1alpha1.OutcomeFail
		case v1alpha1.NoVerdictHold:
			outcome = v1alpha1.OutcomePending
		case v1alpha1.NoVerdictPass:
			outcome = v1alpha1.OutcomePass
		}
	} else if outcome == v1alpha1.OutcomePending {
		unjudged = c.Status.GetCondition(v1alpha1.BatchJudged).IsFalse() // function submit keeps asking the server
	}
	if outcome == v1alpha1.OutcomeFail {
		pod.Verdict = "fail"
		if r := c.Status.ResultOf(pod.Pod); r != nil && r.Verdict != "" {
			pod.Verdict = r.Verdict // as the server or the person wrote it
		}
		if unjudged {
			t.FailedUnjudged++
			t.FailedBy.add(in, c, v1alpha1.NoVerdictFail)
		}
		t.Failed = append(t.Failed, pod)
		return
	}
	t.AnyPassed = t.AnyPassed || outcome == v1alpha1.OutcomePass && (present || !unjudged)
	if !present { // deleted without a fail: the pod that replaces it is judged
		if unjudged && outcome == v1alpha1.OutcomePass {
			t.DeletedUnjudged++
		}
		return
	}
	if outcome == v1alpha1.OutcomePending {
		t.Checking = append(t.Checking, pod)
		if unjudged && !ended(in.ChangeWorkload) {
			t.HeldUnjudged++
			t.HeldBy.add(in, c, v1alpha1.NoVerdictHold)
			if cond := c.Status.GetCondition(v1alpha1.BatchJudged); t.HeldDetail == "" && len(c.Spec.Judges) > 0 && cond.IsFalse() {
				t.HeldDetail = cond.Message
			}
			if c.Status.GetCondition(v1alpha1.BatchJudged).GetReason() == v1alpha1.ReasonVerdictContradicted {
				t.HeldContradicted++
			}
		}
		return
	}
	if unjudged {
		t.PassedUnjudged++
		t.PassedBy.add(in, c, v1alpha1.NoVerdictPass)
	} else {
		pod.Verdict = "pass"
	}
	t.Passed = append(t.Passed, pod)
}

// rules are the rules of unjudged pods, each once.
type rules []settings.Rule

// add adds the rule of an unjudged batch, if it is one with the policy.
func (r *rules) add(in Input, c *v1alpha1.ChangePod, policy v1alpha1.NoVerdictPolicy) {
	if rule := in.Settings.RuleOfBatch(c); rule.Policy == policy && !slices.Contains(*r, rule) {
		*r = append(*r, rule)
	}
}

// after returns a text and the rules.
func (r rules) after(text string) string {
	if len(r) == 0 {
		return text
	}
	return text + ": " + r.String()
}

func (r rules) String() string {
	var texts []string
	for _, rule := range r {
		texts = append(texts, rule.String())
	}
	return strings.Join(texts, ", ")
}

// allPassed reports whether every pod of the version passed and none is missing.
func (t *PodOutcomes) allPassed(replicas int32) bool {
	return len(t.Preparing) == 0 && len(t.Checking) == 0 && len(t.Failed) == 0 && len(t.Passed) >= int(replicas)
}

// allJudged reports whether every pod that passed has a verdict.
func (t *PodOutcomes) allJudged() bool { return len(t.Passed) > 0 && t.PassedUnjudged == 0 }

// failure is a message with the first pod that failed and their number.
func (t *PodOutcomes) failure() string {
	text := t.Failed[0].Failure()
	if n := len(t.Failed) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

func (t *PodOutcomes) summary() string {
	text := fmt.Sprintf("%d pods passed, %d are being checked, %d are not in a batch yet", len(t.Passed), len(t.Checking), len(t.Preparing))
	if t.Later > 0 {
		text += fmt.Sprintf("; %d later ones are not judged", t.Later)
	}
	if t.PassedUnjudged > 0 {
		text += fmt.Sprintf("; %d of the passed pods are unjudged", t.PassedUnjudged)
	}
	if t.HeldUnjudged > 0 {
		text += fmt.Sprintf("; %d of the pods being checked are unjudged and wait for a late verdict or a person", t.HeldUnjudged)
		if len(t.HeldBy) > 0 {
			text += " (" + t.HeldBy.String() + ")"
		}
	}
	if t.HeldDetail != "" {
		text += ": " + t.HeldDetail
	}
	if t.HeldContradicted > 0 {
		text += fmt.Sprintf(" (the server contradicts its pass of %d: see condition Judged of the ChangePod)", t.HeldContradicted)
	}
	return text
}
