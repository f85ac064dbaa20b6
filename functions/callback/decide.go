package callback

import (
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// recordingTime is the maximum time between the deadline of a call and the write of
// its answer, the node id.
const recordingTime = 5 * time.Second

// action is the action for a verdict.
type action string

const (
	// deliver: the batch is known.
	deliver action = "deliver"
	// deliverOrder: the verdict is for the order.
	deliverOrder action = "deliver-order"
	// wait: a start in flight may return the node.
	wait action = "wait"
	// drop: the order or the node does not exist.
	drop action = "drop"
)

// input has everything that the decision depends on.
type input struct {
	// check is the type of the check; empty if unknown.
	check altershield.CheckType
	node  string
	// release is the release with the order, or nil.
	release *v1alpha1.ChangeWorkload
	// batches are the batches of the release, or only the one with the node.
	batches     []v1alpha1.ChangePod
	now         time.Time
	callTimeout time.Duration
}

// decide returns the action for an authentic verdict, and its batch. The signature
// does not guarantee that the order or the node exists: a verdict for an unknown one
// has no effect.
func decide(in input) (action, *v1alpha1.ChangePod) {
	if in.release == nil {
		return drop, nil
	}
	// The node identifies the target, whatever check says.
	order := in.release.Status.Order
	if order.HasNode(in.node) {
		return deliverOrder, nil
	}
	for i := range in.batches {
		if in.batches[i].Status.HasNode(in.node) {
			return deliver, &in.batches[i]
		}
	}
	within := in.callTimeout + recordingTime
	if in.check != altershield.CheckBatch && unanswered(order.SubmissionOf(v1alpha1.StagePre), in.now, within) {
		return wait, nil
	}
	for i := range in.batches {
		status := &in.batches[i].Status
		if in.check != altershield.CheckOrder && unanswered(status.SubmissionOf(v1alpha1.StagePre), in.now, within) {
			return wait, nil
		}
	}
	return drop, nil
}

// unanswered reports whether a start may still be answered with its node. The server
// can call back before it answers the start.
func unanswered(start *v1alpha1.Submission, now time.Time, within time.Duration) bool {
	return start != nil && start.AnsweredTime == nil && now.Sub(start.IntentTime.Time) < within
}
