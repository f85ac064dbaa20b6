package changeworkload

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// wakeSubmit sends wake-ups while function submit has to act on the order and its call has its
// turn. Function submit reads status.orderStep, which is therefore written before.
func (r *Reconciler) wakeSubmit(ctx context.Context, in Input, d Decision) (time.Duration, error) {
	c := in.ChangeWorkload
	for _, name := range orderSteps() {
		if !d.Order.WakeSubmit || d.Order.Step.Name != name {
			r.calls.Done(r.wakeups, callID(c, name))
		}
	}
	if !d.Order.WakeSubmit {
		return 0, nil
	}
	name := d.Order.Step.Name
	call, needed := r.callOf(c, name)
	due, next := r.calls.TakeDue(r.wakeups, call, d.Order.WakeFor, needed)
	if !due {
		return next, nil
	}
	event, err := events.New(events.OrderReady{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, Version: c.Spec.Reversion, Attempt: c.Spec.Attempt, Step: name,
	})
	if err != nil {
		return 0, controller.NewPermanentError(fmt.Errorf("build event order.ready of ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err))
	}
	r.sender.Send(ctx, event)
	return next, nil
}

// callOf returns the call that the wake-up of a step leads to. It returns false if
// function submit only asks the server for a verdict.
func (r *Reconciler) callOf(c *v1alpha1.ChangeWorkload, name v1alpha1.OrderStepName) (callqueue.Call, bool) {
	call := callqueue.Call{
		ID: callID(c, name), Attempt: 1, Release: c.Namespace + "/" + c.Name,
		Priority: name != v1alpha1.OrderStepClose,
		Admitted: func() { r.enqueue(keyOf(c)) },
	}
	o := c.Status.Order
	if !o.Opened() {
		if o != nil && o.Error != nil {
			// Opening has no count of attempts; each error has a later time.
			call.Attempt = o.Error.Time.Unix()
		}
		return call, true
	}
	if name == v1alpha1.OrderStepClose {
		if o.Closing != nil {
			call.Attempt = numberOf(o.Closing.Attempts, o.Closing.Error)
		}
		return call, true
	}
	stage := v1alpha1.StagePre
	if name == v1alpha1.OrderStepFinish {
		stage = v1alpha1.StagePost
	}
	sub := o.SubmissionOf(stage)
	if sub != nil {
		call.Attempt = numberOf(sub.Attempts, sub.Error)
	}
	return call, sub == nil || (sub.AnsweredTime == nil && !c.Status.OrderVerdictOf(stage).Unconfirmed())
}

// numberOf is the number of the call in flight, or after an error of the next one.
func numberOf(attempts int32, err *v1alpha1.ServerError) int64 {
	if err != nil {
		return int64(attempts) + 1
	}
	return int64(attempts)
}

// forget ends the calls and wake-ups of a ChangeWorkload that is deleted, or whose namespace is not opted in.
func (r *Reconciler) forget(c *v1alpha1.ChangeWorkload) {
	for _, name := range orderSteps() {
		r.calls.Done(r.wakeups, callID(c, name))
	}
	r.probationWakeUps.Done(string(c.UID))
}

func keyOf(c *v1alpha1.ChangeWorkload) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

// callID identifies the call of a step.
func callID(c *v1alpha1.ChangeWorkload, name v1alpha1.OrderStepName) string {
	return "order/" + string(c.UID) + "/" + string(name)
}

func orderSteps() []v1alpha1.OrderStepName {
	return []v1alpha1.OrderStepName{v1alpha1.OrderStepStart, v1alpha1.OrderStepFinish, v1alpha1.OrderStepClose}
}
