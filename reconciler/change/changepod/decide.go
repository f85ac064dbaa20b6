package changepod

import (
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/batchstatus"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

const (
	// minPhaseAge is how old an interim phase must be before it is written. Most
	// end sooner, and a write for each phase would double the number of writes.
	minPhaseAge = time.Second

	// interimWritePeriod and interimWriteBurst limit the writes of interim phases
	// of this process; interimWriteRetry is the delay of a write above the limit.
	interimWritePeriod = 5 * time.Second
	interimWriteBurst  = 50
	interimWriteRetry  = 5 * time.Second
)

// Input is the input of Decide.
type Input struct {
	Now      time.Time
	Settings settings.Settings
	// ServerConfigured: an AlterShield server is configured.
	ServerConfigured bool
	// OrderAbandoned: the server did not accept the order in time, and Breakwater no longer
	// waits for it.
	OrderAbandoned bool
	// OrderDetail is the message of condition OrderAccepted, which says why.
	OrderDetail string
	// Superseded: a newer template ended the release, so function submit submits
	// none of its batches any more.
	Superseded bool
	// OrderCheckFailed: no batch of the release is started.
	OrderCheckFailed bool
	// OrderJudgedSince is the last change of condition OrderJudged, or zero. If a batch waited
	// until a person overruled the order check, its timeouts count from this time.
	OrderJudgedSince time.Time
	// WokenSince is the time from which submit-timeout counts for a stage (callqueue.WokenSince);
	// zero while its call waits in the queue of this process.
	WokenSince map[v1alpha1.Stage]time.Time
	// DecidingSince is the time of the first decision of this process since it leads a bucket, or of the first one
	// after the last opt-in of the namespace; zero means long ago. A deadline before DecidingSince plus a grace time is moved to that time
	// (resend.ExtendDeadline): perhaps no process ran before that could wake the functions.
	DecidingSince time.Time
	ChangePod     *v1alpha1.ChangePod
}

// Decision is the state of a batch and what to do next.
type Decision struct {
	// Phase and Message are for status.status and status.message.
	Phase   v1alpha1.BatchPhase
	Message v1alpha1.BatchPhase
	// Reason is the reason of condition Judged, and Detail its message.
	Reason string
	Detail string
	// Since is when the phase began.
	Since time.Time
	// WakeStage is the stage that function submit has to act on; empty for none.
	WakeStage v1alpha1.Stage
	// WakeFor is the purpose of the wake-ups of function submit.
	WakeFor resend.Purpose
	// WakeJudges are the names of the judges other than the server that are woken.
	WakeJudges []string
	// HeldUnjudged: the call or a judge timed out, but no-verdict is Hold; for judge metrics,
	// insufficientDataPolicy is. Function submit or the judge is still woken, because it may become
	// reachable again.
	HeldUnjudged bool
	// Deadline is when the phase changes without an event; zero means never.
	Deadline time.Time
}

// Decide derives the state from the facts, and not from the earlier state, with two
// exceptions: a batch that ended unjudged stays ended until a verdict comes, even if
// the configuration changes, and a held batch stays held until the server accepts its
// call (keepHold). A batch that a person ended continues when the person removes the
// result.
func Decide(in Input) Decision {
	d := decideServer(in)
	if len(in.ChangePod.Spec.Judges) > 0 {
		d = withJudges(in, d)
	}
	return d
}

// decideServer is Decide for the server and persons alone.
func decideServer(in Input) Decision {
	c := in.ChangePod
	pre := c.Status.VerdictOf(v1alpha1.StagePre)
	end, at, ended := batchstatus.EndByServer(c)
	switch {
	case c.JudgedByPerson():
		return done(v1alpha1.BatchPostFinish, "", "a person judged the batch", in.Now)
	case ended:
		return done(end.Message, end.Reason, end.Detail, at)
	case endedUnjudged(c):
		return keepEnd(c)
	case !in.ServerConfigured:
		return done(v1alpha1.BatchPreFailed, v1alpha1.ReasonNoServerConfigured,
			"unjudged: no AlterShield server is configured (ConfigMap config-altershield, key base-url)", in.Now)
	case in.OrderAbandoned:
		return done(v1alpha1.BatchPreFailed, v1alpha1.ReasonOrderNotAccepted,
			"unjudged: "+in.OrderDetail, in.Now)
	case pre == nil && in.OrderCheckFailed && !started(c):
		return Decision{Phase: v1alpha1.BatchPreWait, Reason: v1alpha1.ReasonOrderCheckFailed, Since: c.CreationTimestamp.Time,
			Detail: "the order check failed, so no batch is started"}
	case pre.Outcome() == v1alpha1.OutcomeNoVerdict && in.Settings.RuleOfStage(v1alpha1.StagePre, pre).Policy != v1alpha1.NoVerdictPass:
		// A pass of stage POST would hide that stage PRE is unjudged.
		return done(v1alpha1.BatchPreFailed, v1alpha1.ReasonNoVerdict,
			"the PRE verdict is neither pass nor fail: "+pre.Message, pre.Time.Time)
	case pre.EndsStage(), pre.Unconfirmed() && c.Status.SubmissionOf(v1alpha1.StagePost) != nil:
		return decideStage(in, postStage(in, pre.Time.Time))
	default:
		return decidePre(in)
	}
}

// decidePre decides a batch without a PRE verdict that ends the stage.
func decidePre(in Input) Decision {
	c := in.ChangePod
	d := decideStage(in, stageStates{
		stage: v1alpha1.StagePre, begun: deadline.Latest(c.CreationTimestamp.Time, in.OrderJudgedSince), timeout: in.Settings.PreTimeout,
		wait: v1alpha1.BatchPreWait, submitted: v1alpha1.BatchPreSubmitted,
		failed: v1alpha1.BatchPreFailed, late: v1alpha1.BatchPreTimeout,
	})
	pre := c.Status.VerdictOf(v1alpha1.StagePre)
	if d.Message == v1alpha1.BatchPreTimeout && pre.Unconfirmed() && in.Settings.RuleOfStage(v1alpha1.StagePre, pre).Policy == v1alpha1.NoVerdictPass {
		// The server completed the stage, so POST can still judge the batch.
		return decideStage(in, postStage(in, pre.Time.Add(in.Settings.PreTimeout+resend.RetrieveGrace)))
	}
	return d
}

// postStage is stage POST of a batch whose stage PRE ended at a time.
func postStage(in Input, begun time.Time) stageStates {
	return stageStates{
		stage: v1alpha1.StagePost, begun: begun, timeout: in.Settings.PostTimeout,
		wait: v1alpha1.BatchPostWait, submitted: v1alpha1.BatchPostSubmitted,
		failed: v1alpha1.BatchPostFailed, late: v1alpha1.BatchPostTimeout,
	}
}

// stageStates are the phases and times of one stage.
type stageStates struct {
	stage                         v1alpha1.Stage
	begun                         time.Time
	timeout                       time.Duration
	wait, submitted, failed, late v1alpha1.BatchPhase
}

// decideStage decides a stage without a verdict that ends it. Its timeout counts from the
// first intent: the time in which the call waits for its turn does not count.
func decideStage(in Input, s stageStates) Decision {
	sub := in.ChangePod.Status.SubmissionOf(s.stage)
	verdict := in.ChangePod.Status.VerdictOf(s.stage)
	// A finish without an error counts as accepted: its answer is written only if
	// the verdict does not come soon. A verdict implies the answer, too.
	accepted := sub.Accepted() || (sub != nil && (verdict.Unconfirmed() || (s.stage == v1alpha1.StagePost && sub.Error == nil)))
	if in.Superseded && !accepted {
		return done(s.failed, v1alpha1.ReasonSuperseded,
			"a newer template was applied before this stage was submitted", in.Now)
	}
	d := Decision{Phase: s.wait, Since: s.begun, WakeStage: s.stage}
	if sub == nil {
		d = decideUnrequested(in, s, d)
	} else {
		d = decideRequested(in, s, accepted, d)
	}
	if accepted {
		return d
	}
	return keepHold(in, d)
}

// decideRequested decides a stage whose call has an intent: it was made, or was about to
// be made.
func decideRequested(in Input, s stageStates, accepted bool, d Decision) Decision {
	sub, verdict := in.ChangePod.Status.SubmissionOf(s.stage), in.ChangePod.Status.VerdictOf(s.stage)
	d.Deadline = deadline.Latest(sub.FirstIntent(), in.OrderJudgedSince).Add(s.timeout)
	if accepted {
		d.Phase, d.Since, d.Deadline = s.submitted, answeredAt(sub), sub.FirstIntent().Add(s.timeout)
	}
	if in.Now.Before(d.Deadline) {
		return whileAwaitingVerdict(in, s.stage, sub, verdict, d)
	}
	if end := resend.EndOfStage(d.Deadline, accepted, in.DecidingSince, in.Now); in.Now.Before(end) {
		d.Deadline = end
		if accepted {
			d.WakeFor = resend.ForLastVerdict
		}
		return d
	}
	if accepted {
		reason, detail := withoutVerdict(s.stage, verdict, s.timeout)
		return done(s.late, reason, detail, in.Now)
	}
	d.Reason, d.Detail = v1alpha1.ReasonServerUnreachable, "the server did not accept the batch within "+s.timeout.String()
	if sub.Error != nil {
		d.Reason, d.Detail = sub.Error.Reason, d.Detail+": "+sub.Error.Message
	}
	return unaccepted(in, s, d)
}

// decideUnrequested decides a stage whose call has no intent. While it waits in our
// queue it has no deadline: the limits of Breakwater must not decide about a batch.
func decideUnrequested(in Input, s stageStates, d Decision) Decision {
	woken := in.WokenSince[s.stage]
	if woken.IsZero() {
		return d
	}
	d.Deadline = woken.Add(in.Settings.SubmitTimeout)
	if in.Now.Before(d.Deadline) {
		return d
	}
	d.Reason = v1alpha1.ReasonNotSubmitted
	d.Detail = "no call was made " + callqueue.WithinSubmitTimeout(in.Settings.SubmitTimeout, callqueue.NoCallCauses)
	return unaccepted(in, s, d)
}

// unaccepted decides a batch that the server has not accepted in time.
func unaccepted(in Input, s stageStates, d Decision) Decision {
	if in.Settings.RuleOfBatch(in.ChangePod).Policy == v1alpha1.NoVerdictHold {
		// The server judges only a batch that it has accepted, so function submit is still
		// woken.
		d.HeldUnjudged, d.Deadline = true, time.Time{}
		return d
	}
	return done(s.failed, d.Reason, d.Detail, in.Now)
}

// keepHold keeps a batch held until the server accepts its call. Otherwise the rollout would
// continue for a while when another process decides, or when a call is made and fails.
func keepHold(in Input, d Decision) Decision {
	c := in.ChangePod
	cond := c.Status.GetCondition(v1alpha1.BatchJudged)
	if d.HeldUnjudged || d.Phase == v1alpha1.BatchExecuteDone || c.Status.Phase == v1alpha1.BatchExecuteDone ||
		!cond.IsFalse() || in.Settings.RuleOfBatch(c).Policy != v1alpha1.NoVerdictHold {
		return d
	}
	switch cond.Reason {
	case v1alpha1.ReasonNotSubmitted, v1alpha1.ReasonServerRejected, v1alpha1.ReasonServerUnreachable:
		d.HeldUnjudged, d.Reason, d.Detail = true, cond.Reason, cond.Message
	}
	return d
}

// whileAwaitingVerdict returns the decision for a stage before its timeout. If the server
// accepted it, function submit asks for the verdict, from VerdictDelay on.
func whileAwaitingVerdict(in Input, s v1alpha1.Stage, sub *v1alpha1.Submission, v *v1alpha1.StageVerdict, d Decision) Decision {
	if sub.AnsweredTime == nil && !v.Unconfirmed() {
		// The writer of the intent makes the call, and the verdict usually follows at
		// once. Otherwise function submit stores the answer, or calls again.
		if call := sub.IntentTime.Add(resend.CallDelay); s == v1alpha1.StagePost && sub.Error == nil && in.Now.Before(call) {
			d.WakeStage, d.Deadline = "", deadline.Earliest(d.Deadline, call)
		}
		return d
	}
	d.WakeFor = resend.ForVerdict
	if ask := answeredAt(sub).Add(resend.VerdictDelay); in.Now.Before(ask) {
		d.WakeStage, d.Deadline = "", deadline.Earliest(d.Deadline, ask)
	}
	return d
}

// answeredAt is when the call was answered, or made if no answer is stored.
func answeredAt(sub *v1alpha1.Submission) time.Time {
	if sub.AnsweredTime != nil {
		return sub.AnsweredTime.Time
	}
	return sub.IntentTime.Time
}

// withoutVerdict returns the reason and the message of a stage whose timeout passed after
// the server had accepted it.
func withoutVerdict(stage v1alpha1.Stage, v *v1alpha1.StageVerdict, timeout time.Duration) (reason, detail string) {
	switch {
	case v.IsContradicted():
		return v1alpha1.ReasonVerdictContradicted, v.UnconfirmedDetail(timeout)
	case v.Unconfirmed():
		return v1alpha1.ReasonNoVerdict, v.UnconfirmedDetail(timeout)
	default:
		return v1alpha1.ReasonVerdictTimedOut, fmt.Sprintf("no %s verdict within %s, and the server had no pass when it was asked", stage, timeout)
	}
}

// started reports whether the server answered the start of the batch. Function submit
// gives up an intent without an answer when the order check has failed.
func started(c *v1alpha1.ChangePod) bool {
	return c.Status.SubmissionOf(v1alpha1.StagePre).Accepted()
}

// endedUnjudged reports whether the batch ended without a verdict and has none since.
func endedUnjudged(c *v1alpha1.ChangePod) bool {
	if c.Status.Phase != v1alpha1.BatchExecuteDone || c.VerdictWithdrawn() {
		return false
	}
	switch v1alpha1.BatchPhase(c.Status.Message) {
	case v1alpha1.BatchPostFailed, v1alpha1.BatchPostTimeout:
		return true
	default:
		return !c.Status.VerdictOf(v1alpha1.StagePre).EndsStage()
	}
}

func done(message v1alpha1.BatchPhase, reason, detail string, since time.Time) Decision {
	return Decision{Phase: v1alpha1.BatchExecuteDone, Message: message, Reason: reason, Detail: detail, Since: since}
}

// keepEnd returns the decision with which the batch ended.
func keepEnd(c *v1alpha1.ChangePod) Decision {
	d := done(v1alpha1.BatchPhase(c.Status.Message), v1alpha1.ReasonNoVerdict, "", c.CreationTimestamp.Time)
	if cond := c.Status.GetCondition(v1alpha1.BatchJudged); cond != nil {
		d.Reason, d.Detail = cond.Reason, cond.Message
	}
	return d
}
