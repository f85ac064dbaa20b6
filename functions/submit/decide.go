package submit

import (
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Action is what a wake-up leads to, and a metric label.
type Action string

// The actions.
const (
	// Nothing: no call is due, or none may be made now, for example because the circuit breaker is open.
	// Decision.Reason says why.
	Nothing Action = "nothing"
	// InFlight: another process has written an intent and may be calling.
	InFlight Action = "in-flight"
	// OpenOrder opens the order, without which the server rejects every batch.
	OpenOrder Action = "open-order"
	// StartBatch requests the PRE check.
	StartBatch Action = "start-batch"
	// FinishBatch requests the POST check.
	FinishBatch Action = "finish-batch"
	// StoreAnswer stores the cached answer to a finish.
	StoreAnswer Action = "store-answer"
	// AskRetrieve asks the server for the verdict. The callback may be lost, or the answer to a
	// finish that the server accepted.
	AskRetrieve Action = "ask-retrieve"
	// Resubmit runs a PRE check again for which neither a callback nor a pass was received.
	Resubmit Action = "resubmit"
	// StartOrder requests the PRE check of the order as a whole.
	StartOrder Action = "start-order"
	// FinishOrder requests the POST check of the order.
	FinishOrder Action = "finish-order"
	// CloseOrder closes the order with the result of the release.
	CloseOrder Action = "close-order"
	// Throttled: the rate limit (qps) had no slot for the call in time. Nothing is
	// written; the reconciler sends the wake-up again.
	Throttled Action = "throttled"
)

// requestsCheck reports whether the action leads to a new check: AskRetrieve calls the server, but
// only for the verdict of an earlier one. A superseded release gets no new
// check, but function submit still asks for the verdicts of earlier ones.
func (o Action) requestsCheck() bool {
	switch o {
	case Nothing, InFlight, StoreAnswer, AskRetrieve:
		return false
	default:
		return true
	}
}

// Input has everything that a decision depends on.
type Input struct {
	Release *v1alpha1.ChangeWorkload
	Batch   *v1alpha1.ChangePod
	// Stage is the stage of the wake-up.
	Stage v1alpha1.Stage
	// AnswerCached means that this process has cached the answer to the last finish
	// instead of storing it.
	AnswerCached bool
	callContext
}

// callContext has what a decision about a batch and a decision about an order both depend on.
type callContext struct {
	// Asked reports whether retrieve was called during this wake-up and returned no
	// pass; it is not called again. The answer is not a verdict: the server answers
	// fail also while a check runs, and for a check that never began.
	Asked bool
	// NotBegunNode is the node whose PRE check has not begun, as the server answered
	// during this wake-up, or "".
	NotBegunNode string
	Now          time.Time
	// CallTimeout is the maximum duration of a call to the server. An older intent
	// without an answer has expired.
	CallTimeout time.Duration
	// Reservation is the slot of the call in the rate limit, or nil.
	Reservation *altershield.Reservation
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason string
}

// Decide returns the action for a wake-up for a batch. It depends on facts alone,
// because the wake-up may be duplicate, late or outdated.
func Decide(in Input) Decision {
	for _, step := range []func(Input) Decision{decideRelease, decideBatch, decideOpenOrder, decideCall} {
		if d := step(in); d.Action != "" {
			if in.Release.Status.FailedAndReplaced() && d.Action.requestsCheck() {
				return Decision{Nothing, "a newer template was applied"}
			}
			return d
		}
	}
	return Decision{}
}

// decideRelease returns a decision if the server does not judge the release.
func decideRelease(in Input) Decision {
	w := in.Release
	switch {
	case w.DeletionTimestamp != nil:
		return Decision{Nothing, "the release is terminating"}
	case w.Spec.Attempt == 0:
		return Decision{Nothing, "a baseline is not judged"}
	case w.Status.Phase == v1alpha1.ReleaseFailed && w.Status.OrderAbandoned():
		return Decision{Nothing, "the server did not accept the order in time"}
	}
	return Decision{}
}

// decideBatch returns a decision if the batch does not need the stage.
func decideBatch(in Input) Decision {
	p := in.Batch
	switch {
	case p.DeletionTimestamp != nil:
		return Decision{Nothing, "the batch is terminating"}
	case !v1alpha1.OwnedBy(p, in.Release.UID):
		return Decision{Nothing, "the batch belongs to another attempt"}
	case stageOver(in.Stage, p.Status.Phase):
		return Decision{Nothing, "the stage of the batch is over"}
	case p.Status.VerdictOf(in.Stage).EndsStage():
		return Decision{Nothing, "the verdict is stored"}
	case in.Stage == v1alpha1.StagePre && p.Status.SubmissionOf(v1alpha1.StagePost) != nil:
		return Decision{Nothing, "the stage of the batch is over"}
	case in.Stage == v1alpha1.StagePre && in.Release.Status.OrderCheckFailed():
		return Decision{Nothing, "the order check failed"}
	case in.Stage == v1alpha1.StagePost && p.Status.ChangePodID == "":
		return Decision{Nothing, "the batch was not started"}
	}
	return Decision{}
}

// stageOver reports whether the stage is over in the phase. A phase lags behind the
// facts, so an earlier phase has no meaning.
func stageOver(stage v1alpha1.Stage, phase v1alpha1.BatchPhase) bool {
	switch phase {
	case v1alpha1.BatchInit, v1alpha1.BatchPreWait, v1alpha1.BatchPreSubmitted:
		return false
	case v1alpha1.BatchPostWait, v1alpha1.BatchPostSubmitted:
		return stage == v1alpha1.StagePre
	default:
		return true
	}
}

// decideOpenOrder returns a decision if the order is not open. Opening an order twice
// has no effect, so it needs no intent.
func decideOpenOrder(in Input) Decision {
	if !in.Release.Status.Order.Opened() {
		return Decision{OpenOrder, "the order is not open"}
	}
	return Decision{}
}

// decideCall returns the call of the stage.
func decideCall(in Input) Decision {
	first := map[v1alpha1.Stage]Action{v1alpha1.StagePre: StartBatch, v1alpha1.StagePost: FinishBatch}[in.Stage]
	s := in.Batch.Status.SubmissionOf(in.Stage)
	if in.AnswerCached && s != nil && s.AnsweredTime == nil && in.Batch.Status.VerdictOf(in.Stage) == nil {
		return Decision{StoreAnswer, "the server accepted the finish and has not judged it yet"}
	}
	return nextCall(callState{
		submission: s, verdict: in.Batch.Status.VerdictOf(in.Stage), node: in.Batch.Status.ChangePodID, stage: in.Stage, first: first,
		callContext: in.callContext,
	})
}
