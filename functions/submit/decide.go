package submit

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Outcome is what is done for a wake-up; it serves as a metric label.
type Outcome string

// The outcomes.
const (
	// Nothing: the wake-up is outdated, or its call was made.
	Nothing Outcome = "nothing"
	// InFlight: somebody wrote an intent and may be calling right now.
	InFlight Outcome = "in-flight"
	// OpenOrder: without the order the server refuses every batch.
	OpenOrder Outcome = "open-order"
	// StartBatch asks for the PRE check.
	StartBatch Outcome = "start-batch"
	// FinishBatch asks for the POST check.
	FinishBatch Outcome = "finish-batch"
	// StoreAnswer writes the answer to a finish.
	StoreAnswer Outcome = "store-answer"
	// AskRetrieve: the server may have a verdict whose callback was lost, or
	// may have taken a finish whose answer was lost.
	AskRetrieve Outcome = "ask-retrieve"
)

// Input is all that a decision depends on.
type Input struct {
	Workload *v1alpha1.ChangeWorkload
	Pod      *v1alpha1.ChangePod
	// Stage is what the wake-up is for.
	Stage v1alpha1.Stage
	// Asked says that retrieve was asked in the course of this wake-up and did
	// not say pass, which tells nothing: the server says fail also while a
	// check runs, and of one that never began.
	Asked bool
	Now   time.Time
	// CallDeadline is how long a call to the server can take: an intent that
	// is older and has no answer will not get one.
	CallDeadline time.Duration
	// Remembered says that this process has the answer to the last finish, and
	// has not written it: the verdict that would come made it needless.
	Remembered bool
}

// Decision is what has to be done, and why.
type Decision struct {
	Outcome Outcome
	Reason  string
}

// Decide says what a wake-up for a batch leads to, from facts alone: the wake-up may be
// doubled, late or outdated.
func Decide(in Input) Decision {
	for _, step := range []func(Input) Decision{release, batch, order, call} {
		if d := step(in); d.Outcome != "" {
			return d
		}
	}
	return Decision{}
}

// release: is this a release that the server is to judge?
func release(in Input) Decision {
	w := in.Workload
	switch {
	case w.DeletionTimestamp != nil:
		return Decision{Nothing, "the release is being deleted"}
	case w.Spec.Attempt == 0:
		return Decision{Nothing, "a baseline is not judged"}
	case w.Status.Phase == v1alpha1.WorkloadFailed:
		return Decision{Nothing, "the server did not take the order in time"}
	}
	return Decision{}
}

// batch: does the batch still wait for the stage?
func batch(in Input) Decision {
	p := in.Pod
	switch {
	case p.DeletionTimestamp != nil:
		return Decision{Nothing, "the batch is being deleted"}
	case !v1alpha1.OwnedBy(p, in.Workload.UID):
		return Decision{Nothing, "the batch belongs to another attempt"}
	case past(in.Stage, p.Status.Phase):
		return Decision{Nothing, "the batch is past the stage"}
	case p.Status.VerdictOf(in.Stage) != nil:
		return Decision{Nothing, "the verdict is there"}
	case in.Stage == v1alpha1.StagePre && p.Status.SubmissionOf(v1alpha1.StagePost) != nil:
		return Decision{Nothing, "the batch is past the stage"}
	case in.Stage == v1alpha1.StagePre && orderFailed(in.Workload):
		return Decision{Nothing, "the order as a whole failed its check"}
	case in.Stage == v1alpha1.StagePost && p.Status.ChangePodID == "":
		return Decision{Nothing, "the batch was not started"}
	}
	return Decision{}
}

// past says whether a stage is over in a state. A state lags behind the facts,
// so that an earlier one says nothing.
func past(stage v1alpha1.Stage, phase v1alpha1.PodPhase) bool {
	switch phase {
	case v1alpha1.PodInit, v1alpha1.PodPreWait, v1alpha1.PodPreSubmitted:
		return false
	case v1alpha1.PodPostWait, v1alpha1.PodPostSubmitted:
		return stage == v1alpha1.StagePre
	default:
		return true
	}
}

// order: opening it twice does no harm, so it needs no intent.
func order(in Input) Decision {
	if !in.Workload.Status.Order.Opened() {
		return Decision{OpenOrder, "the order is not open"}
	}
	return Decision{}
}

// orderFailed says whether the server, or a person, failed the order as a whole.
func orderFailed(w *v1alpha1.ChangeWorkload) bool {
	outcome, _ := w.Status.OrderOutcome()
	return outcome == v1alpha1.OutcomeFail
}

// call is the call of the stage.
func call(in Input) Decision {
	first := map[v1alpha1.Stage]Outcome{v1alpha1.StagePre: StartBatch, v1alpha1.StagePost: FinishBatch}[in.Stage]
	s := in.Pod.Status.SubmissionOf(in.Stage)
	if in.Remembered && s != nil && s.AnsweredTime == nil {
		return Decision{StoreAnswer, "the server took the finish and its verdict takes its time"}
	}
	return nextCall(s, in.Stage, first, in.Asked, in.Now, in.CallDeadline)
}

// nextCall: a start that is repeated makes another node, whose predecessor's
// verdict is dropped. A finish that is repeated is refused while the check of
// the first one runs, and accepted and never judged after that; so the server
// is asked before whether it has passed the batch already.
func nextCall(s *v1alpha1.Submission, stage v1alpha1.Stage, first Outcome, asked bool, now time.Time, callDeadline time.Duration) Decision {
	switch {
	case s == nil:
		return Decision{first, "the call was not made"}
	case s.AnsweredTime != nil && now.Sub(s.AnsweredTime.Time) < callDeadline:
		return Decision{Nothing, "the server was called and its verdict may come"}
	case s.AnsweredTime != nil && !asked:
		return Decision{AskRetrieve, "the server was called and no verdict came"}
	case s.AnsweredTime != nil:
		return Decision{Nothing, "the server has no verdict that one can believe"}
	case s.Error == nil && now.Sub(s.IntentTime.Time) < callDeadline:
		return Decision{InFlight, "somebody is calling"}
	case stage == v1alpha1.StagePre:
		return Decision{first, "the last start was not answered"}
	case s.Error != nil && s.Error.Reason == v1alpha1.ReasonServerRejected:
		return Decision{first, "the last finish was refused"}
	case !asked:
		return Decision{AskRetrieve, "the last finish may have arrived"}
	default:
		return Decision{first, "nothing says that the last finish arrived"}
	}
}
