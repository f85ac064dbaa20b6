package submit

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// resumeAfter is the time between the answer to a start and the resumption of its check, if no
// verdict arrives. It doubles with each resumption. It has to be long enough for a slow server
// to begin the check.
const resumeAfter = 5 * time.Second

// callState has everything that the next call of a stage depends on, of a batch or
// of the order.
type callState struct {
	submission *v1alpha1.Submission
	verdict    *v1alpha1.StageVerdict
	// node is the current order node, or "".
	node  string
	stage v1alpha1.Stage
	// first is the call of the stage: a start or a finish.
	first Action
	callContext
}

// nextCall returns the next call of a stage. A repeated start creates a new node, and verdicts
// for a node whose answer was lost are dropped. The server rejects a repeated finish while the
// check of the first one runs; later it accepts the finish, but rarely judges it. Therefore
// retrieve comes before a repeated finish.
func nextCall(c callState) Decision {
	s := c.submission
	switch {
	case c.verdict.Unconfirmed() && c.Asked:
		return Decision{Nothing, "the server does not confirm its pass"}
	case c.verdict.Unconfirmed():
		return Decision{AskRetrieve, "the pass without rules is not confirmed"}
	case s == nil:
		return Decision{c.first, "the call was not made"}
	case s.AnsweredTime != nil:
		return whileAwaitingVerdict(c)
	case s.Error == nil && c.Now.Sub(s.IntentTime.Time) < c.CallTimeout:
		return Decision{InFlight, "another call is in flight"}
	case c.stage == v1alpha1.StagePre:
		return Decision{c.first, "the last start was not answered"}
	case s.Error != nil && s.Error.Reason == v1alpha1.ReasonServerRejected:
		return Decision{c.first, "the server rejected the last finish"}
	case !c.Asked:
		return Decision{AskRetrieve, "the last finish may have arrived"}
	default:
		return Decision{c.first, "the last finish probably did not arrive"}
	}
}

// whileAwaitingVerdict returns the next call after the server accepted a start or finish. The server
// may have lost the callback, or its own event of the start. Retrieve returns a lost pass.
// Resubmit repeats a check whose callback was lost. If the check never began, the server
// rejects Resubmit, and the start is repeated.
func whileAwaitingVerdict(c callState) Decision {
	waiting := c.Now.Sub(c.submission.AnsweredTime.Time)
	switch {
	case waiting < resend.VerdictDelay:
		return Decision{Nothing, "waiting for the verdict"}
	case !c.Asked:
		return Decision{AskRetrieve, "the callback may be lost"}
	case c.stage != v1alpha1.StagePre, c.submission.Resumptions >= v1alpha1.MaxResumptions, waiting < resumeAfter<<c.submission.Resumptions:
		return Decision{Nothing, "retrieve returned no pass; waiting for the callback"}
	case c.NotBegunNode == "":
		return Decision{Resubmit, "the server may have lost the start"}
	case c.NotBegunNode == c.node:
		return Decision{c.first, "the server did not begin the check"}
	default:
		return Decision{Nothing, "the check was begun again"}
	}
}
