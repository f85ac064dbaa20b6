package changepod

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

const (
	// settle is how long a state must last before it is worth a write: most
	// are over sooner, and a write per state would double our load.
	minPhaseAge = time.Second

	// sparePeriod and spareBurst bound the writes of states on the way in this
	// process; noRoom is when one for which there is no room is tried again.
	interimWritePeriod = 5 * time.Second
	interimWriteBurst  = 50
	interimWriteRetry  = 5 * time.Second

	// retrieveGrace is how long after its deadline a stage waits for function
	// submit to ask the server itself, before it counts as no verdict.
	retrieveGrace = 15 * time.Second
)

// Input is everything that the state of a ChangePod follows from.
type Input struct {
	Now      time.Time
	Settings settings.Settings
	// ServerConfigured: an AlterShield server is configured.
	ServerConfigured bool
	// OrderFailed: the server did not take the order of the release in time.
	OrderNotAccepted bool
	// Superseded: the release ended when a newer template was applied, so function
	// submit asks the server about none of its batches any more.
	Superseded bool
	// OrderHeld: the order as a whole failed its check, so no batch is started.
	OrderCheckFailed bool
	// OrderSince is when the word about the order as a whole last changed; zero
	// when it never did. What OrderHeld has cost a batch is not counted.
	OrderJudgedSince time.Time
	// Up is when this process began to decide; zero when that does not matter.
	// What ended while nobody was there to wake function submit is given
	// retrieveGrace from then on.
	Up        time.Time
	ChangePod *v1alpha1.ChangePod
}

// Decision is the state that follows.
type Decision struct {
	// Phase and Message are for status.status and status.message.
	Phase   v1alpha1.PodPhase
	Message v1alpha1.PodPhase
	// Reason says in one word why the phase is what it is.
	Reason string
	// Detail says it to a person.
	Detail string
	// Since is when the phase began.
	Since time.Time
	// Wake is the stage that function submit has something to do for; empty
	// when it has not.
	WakeStage v1alpha1.Stage
	// Held: time is up and nobody judged, but no-verdict is Hold, so function
	// submit is woken on: the server may come back.
	HeldUnjudged bool
	// Deadline is when time alone changes the phase; zero when it never does.
	Deadline time.Time
}

// Decide derives the state from the facts. It never looks at the state that
// was derived before, with one exception: a batch whose time was up stays ended
// until a verdict comes, whatever the configuration becomes. One that a
// person's word ended goes on when that is taken back.
func Decide(in Input) Decision {
	c := in.ChangePod
	pre, post := c.Status.VerdictOf(v1alpha1.StagePre), c.Status.VerdictOf(v1alpha1.StagePost)
	switch {
	case c.JudgedByPerson():
		return done(v1alpha1.PodPostFinish, "", "a person judged the batch", in.Now)
	case post != nil:
		return done(v1alpha1.PodPostFinish, "", post.Message, post.Time.Time)
	case pre != nil && v1alpha1.ParseVerdict(pre.Verdict) == v1alpha1.OutcomeFail:
		return done(v1alpha1.PodPreFailed, v1alpha1.ReasonCheckFailed, pre.Message, pre.Time.Time)
	case endedUnjudged(c):
		return keepEnd(c)
	case !in.ServerConfigured:
		return done(v1alpha1.PodPreFailed, v1alpha1.ReasonNoServer,
			"no AlterShield server is configured (ConfigMap config-altershield, key base-url), so nobody judged", in.Now)
	case in.OrderNotAccepted:
		return done(v1alpha1.PodPreFailed, v1alpha1.ReasonOrderNotAccepted,
			"the server did not take the order of this release, so nobody judged", in.Now)
	case pre == nil && in.OrderCheckFailed && !started(c):
		return Decision{Phase: v1alpha1.PodPreWait, Reason: v1alpha1.ReasonOrderCheckFailed, Since: c.CreationTimestamp.Time,
			Detail: "the order as a whole failed its check, so no batch is started"}
	case pre.Outcome() == v1alpha1.OutcomeNone && in.Settings.NoVerdictOf(v1alpha1.StagePre) != v1alpha1.NoVerdictPass:
		// The next stage would make it look judged.
		return done(v1alpha1.PodPreFailed, v1alpha1.ReasonNoVerdict,
			"the server said neither pass nor fail before the change: "+pre.Message, pre.Time.Time)
	case pre == nil:
		return decideStage(in, stageStates{
			stage: v1alpha1.StagePre, begun: later(c.CreationTimestamp.Time, in.OrderJudgedSince), timeout: in.Settings.PreTimeout,
			wait: v1alpha1.PodPreWait, submitted: v1alpha1.PodPreSubmitted,
			failed: v1alpha1.PodPreFailed, late: v1alpha1.PodPreTimeout,
		})
	default:
		return decideStage(in, stageStates{
			stage: v1alpha1.StagePost, begun: pre.Time.Time, timeout: in.Settings.PostTimeout,
			wait: v1alpha1.PodPostWait, submitted: v1alpha1.PodPostSubmitted,
			failed: v1alpha1.PodPostFailed, late: v1alpha1.PodPostTimeout,
		})
	}
}

// stageOf names the states of one stage.
type stageStates struct {
	stage                         v1alpha1.Stage
	begun                         time.Time
	timeout                       time.Duration
	wait, submitted, failed, late v1alpha1.PodPhase
}

// waitFor decides a stage whose verdict has not come.
func decideStage(in Input, s stageStates) Decision {
	sub := in.ChangePod.Status.SubmissionOf(s.stage)
	answered := sub != nil && sub.AnsweredTime != nil
	// A finish that met with no error counts as taken: its answer is written
	// only when its verdict takes its time.
	taken := answered || (s.stage == v1alpha1.StagePost && sub != nil && sub.Error == nil)
	if in.Superseded && !taken {
		return done(s.failed, v1alpha1.ReasonSuperseded,
			"a newer template was applied before the server was asked about this stage", in.Now)
	}
	d := Decision{Phase: s.wait, Since: s.begun, WakeStage: s.stage}
	switch {
	case answered:
		d = Decision{Phase: s.submitted, Since: sub.AnsweredTime.Time}
	case taken:
		d = Decision{Phase: s.submitted, Since: sub.IntentTime.Time, WakeStage: s.stage}
	}
	d.Deadline = d.Since.Add(s.timeout)
	if in.Now.Before(d.Deadline) {
		return d
	}
	end := d.Deadline
	if taken {
		// Function submit asks the server once more before nobody has judged.
		end = d.Deadline.Add(retrieveGrace)
	}
	if end = resend.Grace(end, in.Up, in.Now, retrieveGrace); in.Now.Before(end) {
		d.Deadline, d.WakeStage = end, s.stage
		return d
	}
	if taken {
		return done(s.late, v1alpha1.ReasonTimedOut, "no "+string(s.stage)+" verdict came within "+s.timeout.String()+
			", and the server did not say pass when it was asked", in.Now)
	}
	reason, detail := v1alpha1.ReasonServerUnreachable, "the server did not take the batch within "+s.timeout.String()
	if sub != nil && sub.Error != nil {
		reason, detail = sub.Error.Reason, detail+": "+sub.Error.Message
	}
	if in.Settings.NoVerdictOf(in.ChangePod.UnjudgedStages()...) == v1alpha1.NoVerdictHold {
		// Nobody was asked, so no late verdict could end this.
		d.HeldUnjudged, d.Deadline, d.Reason, d.Detail = true, time.Time{}, reason, detail
		return d
	}
	return done(s.failed, reason, detail, in.Now)
}

// started says whether the server is known to have the batch. An intent alone
// says that it may: function submit gives it up when the order has failed.
func started(c *v1alpha1.ChangePod) bool {
	sub := c.Status.SubmissionOf(v1alpha1.StagePre)
	return sub != nil && sub.AnsweredTime != nil
}

// timeWasUp says whether the batch ended because no word came in time, and
// none has come since.
func endedUnjudged(c *v1alpha1.ChangePod) bool {
	if c.Status.Phase != v1alpha1.PodExecuteDone || c.TakenBack() {
		return false
	}
	switch v1alpha1.PodPhase(c.Status.Message) {
	case v1alpha1.PodPostFailed, v1alpha1.PodPostTimeout:
		return true
	default:
		return c.Status.VerdictOf(v1alpha1.StagePre) == nil
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func done(message v1alpha1.PodPhase, reason, detail string, since time.Time) Decision {
	return Decision{Phase: v1alpha1.PodExecuteDone, Message: message, Reason: reason, Detail: detail, Since: since}
}

// stay repeats what was derived when the batch ended.
func keepEnd(c *v1alpha1.ChangePod) Decision {
	d := done(v1alpha1.PodPhase(c.Status.Message), v1alpha1.ReasonNoVerdict, "", c.CreationTimestamp.Time)
	if cond := c.Status.GetCondition(v1alpha1.PodJudged); cond != nil {
		d.Reason, d.Detail = cond.Reason, cond.Message
	}
	return d
}
