package changepod

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// wakeSubmit sends changepod.ready if it is due and its call has its turn. It
// returns when to try again.
func (r *Reconciler) wakeSubmit(ctx context.Context, c *v1alpha1.ChangePod, owner *v1alpha1.ChangeWorkload, d Decision) (time.Duration, error) {
	for _, stage := range stages() {
		if stage != d.WakeStage {
			r.calls.Done(r.wakeups, callID(c, stage))
		}
	}
	if d.WakeStage == "" {
		return 0, nil
	}
	call, needed := r.callOf(c, d.WakeStage)
	due, next := r.calls.TakeDue(r.wakeups, call, d.WakeFor, needed)
	if !due {
		return next, nil
	}
	data := events.ChangePodReady{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, ChangeWorkload: owner.Name,
		Version: owner.Spec.Reversion, Attempt: owner.Spec.Attempt, Stage: d.WakeStage,
	}
	if needed { // function submit writes the intent of the call
		data.ChangePod = events.CopyOf(c)
	}
	event, err := events.New(data)
	if err != nil {
		return 0, controller.NewPermanentError(err)
	}
	r.sender.Send(ctx, event)
	return next, nil
}

// wakeJudges sends changepod.ready to each judge other than the server that is due. It
// returns when to try again.
func (r *Reconciler) wakeJudges(ctx context.Context, c *v1alpha1.ChangePod, owner *v1alpha1.ChangeWorkload, d Decision) (time.Duration, error) {
	var again time.Duration
	for _, j := range c.OtherJudges(false) {
		if !slices.Contains(d.WakeJudges, j.Name) {
			r.judgeWakeUps.Done(judgeWakeUpID(c, j.Name))
			continue
		}
		due, next := r.judgeWakeUps.TakeDue(judgeWakeUpID(c, j.Name))
		again = deadline.ShorterWait(again, next)
		if !due {
			continue
		}
		event, err := events.New(events.JudgeWakeUp(c, owner, j.Name))
		if err != nil {
			return 0, controller.NewPermanentError(err)
		}
		r.sender.Send(ctx, event)
	}
	return again, nil
}

// judgeWakeUpID identifies the wake-ups of a judge.
func judgeWakeUpID(c *v1alpha1.ChangePod, judge string) string {
	return string(c.UID) + "/judge." + judge
}

// callOf returns the call that the wake-up of a stage leads to. It returns false if the wake-up
// leads to no call that needs a turn: function submit stores an answer, or asks the server for
// a verdict.
func (r *Reconciler) callOf(c *v1alpha1.ChangePod, stage v1alpha1.Stage) (callqueue.Call, bool) {
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
	call := callqueue.Call{
		ID: callID(c, stage), Attempt: 1, Release: c.Namespace + "/" + c.Spec.ChangeWorkloadID,
		Priority: stage == v1alpha1.StagePost,
		Admitted: func() { r.enqueue(key) },
	}
	sub := c.Status.SubmissionOf(stage)
	switch {
	case sub == nil:
		return call, true
	case sub.AnsweredTime != nil, c.Status.VerdictOf(stage).Unconfirmed():
		return call, false
	case sub.Error != nil:
		call.Attempt = int64(sub.Attempts) + 1
		return call, true
	default: // the call of a written intent is in flight
		call.Attempt = int64(sub.Attempts)
		return call, stage == v1alpha1.StagePre
	}
}

// forget ends the calls and wake-ups of a ChangePod that is deleted, or whose namespace is not opted in.
func (r *Reconciler) forget(c *v1alpha1.ChangePod) {
	for _, stage := range stages() {
		r.calls.Done(r.wakeups, callID(c, stage))
	}
	for _, j := range c.OtherJudges(false) {
		r.judgeWakeUps.Done(judgeWakeUpID(c, j.Name))
	}
}

// callID identifies the call of a stage.
func callID(c *v1alpha1.ChangePod, stage v1alpha1.Stage) string {
	return string(c.UID) + "/" + string(stage)
}

// wokenSince returns the time from which submit-timeout counts for each stage.
func (r *Reconciler) wokenSince(c *v1alpha1.ChangePod, submitTimeout time.Duration, decidingSince time.Time) map[v1alpha1.Stage]time.Time {
	out := map[v1alpha1.Stage]time.Time{}
	for _, stage := range stages() {
		out[stage] = callqueue.WokenSince(r.wakeups, callID(c, stage), submitTimeout, decidingSince)
	}
	return out
}

func stages() []v1alpha1.Stage { return []v1alpha1.Stage{v1alpha1.StagePre, v1alpha1.StagePost} }
