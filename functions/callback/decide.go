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
	// keep: its node may be the answer of a start that is under way.
	keep outcome = "keep"
	// drop: no order, or no node of it, that it could be about.
	drop outcome = "drop"
	// note: it is about the whole order, which nothing waits for yet.
	note outcome = "note"
)

// input is all that the decision depends on.
type input struct {
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
	switch {
	case in.workload == nil:
		return drop, nil
	case in.check == altershield.CheckOrder:
		return note, nil
	}
	for i := range in.batches {
		if in.batches[i].Status.ChangePodID == in.node {
			return deliver, &in.batches[i]
		}
	}
	for i := range in.batches {
		if unanswered(&in.batches[i], in.now, in.callDeadline+recordingTime) {
			return keep, nil
		}
	}
	return drop, nil
}

// unanswered says whether a start of the batch may get its node yet. The server
// can call back before it has answered the start.
func unanswered(p *v1alpha1.ChangePod, now time.Time, within time.Duration) bool {
	s := p.Status.SubmissionOf(v1alpha1.StagePre)
	return p.Status.ChangePodID == "" && s != nil && s.AnsweredTime == nil && now.Sub(s.IntentTime.Time) < within
}
