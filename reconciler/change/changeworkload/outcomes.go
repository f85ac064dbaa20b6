package changeworkload

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Tally is what is known of each pod of a release.
type PodOutcomes struct {
	// Preparing are pods that no ChangePod has claimed.
	Preparing []v1alpha1.PodSummary
	// Checking are pods without an outcome.
	Checking []v1alpha1.PodSummary
	// Passed are pods that count as passed.
	Passed []v1alpha1.PodSummary
	// Failed are pods that count as failed, also those that are gone.
	Failed []v1alpha1.PodSummary
	// Unjudged is how many of Passed nobody judged.
	PassedUnjudged int
	// Waiting is how many of Checking nobody judged (no-verdict is Hold).
	HeldUnjudged int
	// FailedUnjudged is how many of Failed nobody judged (no-verdict is Fail).
	FailedUnjudged int
}

// unjudgedMessage is said of a pod that nobody judged.
const unjudgedMessage = "nobody judged"

// count sorts the pods. A fail is sticky: it stays when the pod is gone, and
// also when its ChangePod is gone or the word with it, until somebody says pass
// of that very pod. One that nobody spoke follows the policy.
func podOutcomes(in Input) PodOutcomes {
	var t PodOutcomes
	failed := map[types.UID]v1alpha1.PodSummary{}
	for _, f := range in.ChangeWorkload.Status.DefenseCheckFailPods {
		if f.Message != unjudgedMessage {
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
			t.add(in, c, pod, present[pod.UID])
		}
	}
	for _, p := range in.Pods {
		if !claimed[p.UID] {
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

// failedOrOverruled says whether the ChangePod itself tells what has become of a
// pod that failed once: it fails still, or a person has passed it.
func hasCurrentOutcome(c *v1alpha1.ChangePod, pod string) bool {
	if r := c.Status.ResultOf(pod); r != nil && r.Source == "" && v1alpha1.ParseVerdict(r.Verdict) == v1alpha1.OutcomePass {
		return true
	}
	outcome, _ := c.OutcomeOf(pod)
	return outcome == v1alpha1.OutcomeFail
}

// policy is what the pods of a batch count as that nobody judged. What a
// release has ended with stays: a stricter policy is for the next ones, and
// would else suspend every workload that ever passed unjudged.
func noVerdictPolicy(in Input, c *v1alpha1.ChangePod) v1alpha1.NoVerdictPolicy {
	switch in.ChangeWorkload.Status.Phase {
	case v1alpha1.WorkloadSuccess, v1alpha1.WorkloadFailed:
		return v1alpha1.NoVerdictPass
	default:
		return in.Settings.NoVerdictOf(c.UnjudgedStages()...)
	}
}

// add sorts one claimed pod.
func (t *PodOutcomes) add(in Input, c *v1alpha1.ChangePod, pod v1alpha1.PodSummary, present bool) {
	outcome, message := c.OutcomeOf(pod.Pod)
	pod.Message = message
	unjudged := outcome == v1alpha1.OutcomeNone
	if unjudged {
		pod.Message = unjudgedMessage
		switch noVerdictPolicy(in, c) {
		case v1alpha1.NoVerdictFail:
			outcome = v1alpha1.OutcomeFail
		case v1alpha1.NoVerdictHold:
			outcome = v1alpha1.OutcomePending
		case v1alpha1.NoVerdictPass:
			outcome = v1alpha1.OutcomePass
		}
	} else if outcome == v1alpha1.OutcomePending {
		unjudged = c.Status.GetCondition(v1alpha1.PodJudged).IsFalse() // the server is asked on
	}
	if outcome == v1alpha1.OutcomeFail {
		pod.Verdict = "fail"
		if r := c.Status.ResultOf(pod.Pod); r != nil && r.Verdict != "" {
			pod.Verdict = r.Verdict // the word that was said
		}
		if unjudged {
			t.FailedUnjudged++
		}
		t.Failed = append(t.Failed, pod)
		return
	}
	if !present {
		return // gone without a fail: what replaces it is judged
	}
	if outcome == v1alpha1.OutcomePending {
		t.Checking = append(t.Checking, pod)
		if unjudged {
			t.HeldUnjudged++
		}
		return
	}
	if unjudged {
		t.PassedUnjudged++
	} else {
		pod.Verdict = "pass"
	}
	t.Passed = append(t.Passed, pod)
}

// allPassed says whether every pod of the version passed and none is missing.
func (t *PodOutcomes) allPassed(replicas int32) bool {
	return len(t.Preparing) == 0 && len(t.Checking) == 0 && len(t.Failed) == 0 && len(t.Passed) >= int(replicas)
}

// allJudged says whether somebody said pass of every pod that passed.
func (t *PodOutcomes) allJudged() bool { return len(t.Passed) > 0 && t.PassedUnjudged == 0 }

// failure names the first pod that failed and says how many there are.
func (t *PodOutcomes) failure() string {
	first := t.Failed[0]
	text := fmt.Sprintf("pod %s failed its check: %s", first.Pod, first.Message)
	if n := len(t.Failed) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

func (t *PodOutcomes) summary() string {
	text := fmt.Sprintf("%d pods passed, %d before the judge, %d not finished", len(t.Passed), len(t.Checking), len(t.Preparing))
	if t.PassedUnjudged > 0 {
		text += fmt.Sprintf("; nobody judged %d of those that passed", t.PassedUnjudged)
	}
	if t.HeldUnjudged > 0 {
		text += fmt.Sprintf("; nobody judged %d, which wait for a late verdict or a person", t.HeldUnjudged)
	}
	return text
}
