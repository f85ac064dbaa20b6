package diagnosis

import (
	"cmp"
	"fmt"

	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// waits says what a batch waits for; empty if it does not wait.
func waits(b *v1alpha1.ChangePod) string {
	if cond := b.Status.GetCondition(v1alpha1.BatchJudged); cond != nil && len(b.Spec.Judges) > 0 && b.Status.Phase == v1alpha1.BatchPostSubmitted {
		return waitsWithJudges(b, cond)
	}
	return waitsForServer(b)
}

// waitsWithJudges is waits for a batch in stage POST that has judges other than the server. Their
// timeouts count from the creation of the batch; a batch that is held has none.
func waitsWithJudges(b *v1alpha1.ChangePod, judged *apis.Condition) string {
	if judged.IsFalse() {
		return "is held: " + judged.Message
	}
	text := "has no verdict yet: " + judged.Message
	for _, j := range b.OtherJudges(true) {
		if b.Status.JudgeVerdictOf(j.Name) == nil {
			text += fmt.Sprintf("; judge %s has %d s from the creation of the batch", j.Name, cmp.Or(j.TimeoutSeconds, b.Status.PostTimeOutThreshold))
		}
	}
	return text
}

// waitsForServer is waits for a batch that only the server judges.
func waitsForServer(b *v1alpha1.ChangePod) string {
	stage, called := v1alpha1.StagePre, false
	switch b.Status.Phase {
	case v1alpha1.BatchExecuteDone:
		return ""
	case v1alpha1.BatchPreSubmitted:
		called = true
	case v1alpha1.BatchPostSubmitted:
		stage, called = v1alpha1.StagePost, true
	case v1alpha1.BatchPostWait:
		stage = v1alpha1.StagePost
	}
	seconds := b.Status.PreTimeoutThreshold
	if stage == v1alpha1.StagePost {
		seconds = b.Status.PostTimeOutThreshold
	}
	call := b.Status.SubmissionOf(stage)
	switch {
	case called:
		return fmt.Sprintf("waits for the verdict of stage %s, at most %d s from its call", stage, seconds)
	case call == nil:
		return fmt.Sprintf("waits for its call of stage %s", stage)
	case call.Error != nil:
		return fmt.Sprintf("waits for the server: call %d of stage %s failed: %s: %s", call.Attempts, stage, call.Error.Reason, call.Error.Message)
	default:
		return fmt.Sprintf("waits for the answer to call %d of stage %s", call.Attempts, stage)
	}
}
