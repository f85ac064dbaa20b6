package callback

import (
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// recordingTime is how long after the deadline of a call its answer, the node
// id, may take to be written.
const recordingTime = 5 * time.Second

// outcome is what is done with a verdict.
type outcome string

const (
	// deliver: its batch is known.
	deliver outcome = "deliver"
	// deliverOrder: it is about the order as a whole.
	deliverOrder outcome = "deliver-order"
	// keep: its node may be the answer of a start that is under way.
	keep outcome = "keep"
	// drop: no order, or no node of it, that it could be about.
	drop outcome = "drop"
)

// input is all that the decision depends on.
type input struct {
	// check is what the server says that it checked; empty where it does not say.
	check altershield.CheckType
	node  string
	// workload is the release that has the order; nil when none has.
	workload *v1alpha1.ChangeWorkload
	// batches are the release's, or only the one that has the node.
	batches      []v1alpha1.ChangePod
	now          time.Time
	callDeadline time.Duration
}

// decide says what is done with a verdict that is authentic, and which batch it
// is for. A signature says who speaks, not that what they speak of exists: an
// unknown order or node never changes anything.
func decide(in input) (outcome, *v1alpha1.ChangePod) {
	if in.workload == nil {
		return drop, nil
	}
	// The node says what is meant, whatever check says.
	order := in.workload.Status.Order
	if order.Node() != "" && order.Node() == in.node {
		return deliverOrder, nil
	}
	for i := range in.batches {
		if in.batches[i].Status.ChangePodID == in.node {
			return deliver, &in.batches[i]
		}
	}
	within := in.callDeadline + recordingTime
	if in.check != altershield.CheckBatch && order.Node() == "" &&
		unanswered(order.SubmissionOf(v1alpha1.StagePre), in.now, within) {
		return keep, nil
	}
	for i := range in.batches {
		status := &in.batches[i].Status
		if in.check != altershield.CheckOrder && status.ChangePodID == "" &&
			unanswered(status.SubmissionOf(v1alpha1.StagePre), in.now, within) {
			return keep, nil
		}
	}
	return drop, nil
}

// unanswered says whether a start may get its node yet. The server can call
// back before it has answered the start.
func unanswered(start *v1alpha1.Submission, now time.Time, within time.Duration) bool {
	return start != nil && start.AnsweredTime == nil && now.Sub(start.IntentTime.Time) < within
}
