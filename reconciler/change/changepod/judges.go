package changepod

import (
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// judgeGrace is how long a process that has just started waits for a judge whose deadline has
// passed: before the start no process woke the judge.
const judgeGrace = 2 * time.Minute

// Intervals between two wake-ups of a judge other than the server, each of which is a look
// at the batch. A judge needs minutes, so they are longer than those of calls.
const (
	minLookInterval = 10 * time.Second
	maxLookInterval = 20 * time.Second
)

// judgesState groups the judges other than the server by what they do to the batch.
type judgesState struct {
	// waiting are the judges that must answer and have time left. holding have no time
	// left, and their no-verdict policy holds the batch. withoutVerdict gave no verdict or
	// no answer, and the batch ends without them.
	waiting, holding, withoutVerdict []v1alpha1.Judge
	// late reports whether a judge of withoutVerdict did not answer at all.
	late bool
	// wake are the names of the judges to wake.
	wake []string
	// deadline is when the first judge has no time left; zero means never.
	deadline time.Time
}

// withJudges returns the decision about a batch that has other judges than the server;
// server is the decision about the server alone. A fail of any judge ends the batch.
// Otherwise the batch ends when each judge that must answer has answered, or has no time
// left.
func withJudges(in Input, server Decision) Decision {
	c := in.ChangePod
	if c.JudgedByPerson() || failedByServer(c) {
		return server
	}
	if v := c.Status.FailOfJudge(); v != nil {
		return done(v1alpha1.BatchPostFinish, v1alpha1.ReasonCheckFailed, v.Detail(), v.Time.Time)
	}
	s := stateOfJudges(in)
	d := server
	open := server.Phase != v1alpha1.BatchExecuteDone
	switch {
	case open && c.ServerMustAnswer():
	case len(s.waiting) > 0, len(s.holding) > 0:
		d.Phase, d.Message, d.Since = v1alpha1.BatchPostSubmitted, "", c.CreationTimestamp.Time
		d.Reason, d.Detail = v1alpha1.ReasonJudging, "waiting for "+namesOf(s.waiting)
		if !open {
			d.Deadline = time.Time{}
		}
	default:
		d = endOfJudges(in, server, s)
	}
	if len(s.holding) > 0 {
		d.HeldUnjudged = true
		d.Reason, d.Detail = v1alpha1.ReasonVerdictTimedOut, unjudgedDetail(c, s.holding)
	}
	d.WakeJudges = s.wake
	d.Deadline = deadline.Earliest(d.Deadline, s.deadline)
	return d
}

// stateOfJudges groups the judges other than the server.
func stateOfJudges(in Input) judgesState {
	c := in.ChangePod
	endedByTimeout := c.Status.Phase == v1alpha1.BatchExecuteDone && c.Status.Message == string(v1alpha1.BatchPostTimeout)
	var s judgesState
	for _, j := range c.OtherJudges(false) {
		if v := c.Status.JudgeVerdictOf(j.Name); v != nil {
			if v.Outcome() == v1alpha1.OutcomeNoVerdict && !j.Optional {
				s.withoutVerdict = append(s.withoutVerdict, j)
			}
			continue
		}
		end := resend.ExtendDeadline(c.CreationTimestamp.Add(timeoutOf(in, j)), in.DecidingSince, in.Now, judgeGrace)
		hasTime := in.Now.Before(end) && !in.Superseded && (!endedByTimeout || j.Optional)
		if hasTime {
			s.wake = append(s.wake, j.Name)
			s.deadline = deadline.Earliest(s.deadline, end)
		}
		switch {
		case j.Optional:
		case hasTime:
			s.waiting = append(s.waiting, j)
		case in.Settings.RuleOfJudge(j).Policy == v1alpha1.NoVerdictHold && !in.Superseded && !endedByTimeout:
			// A late verdict ends the hold, so the judge is still woken.
			s.holding, s.wake = append(s.holding, j), append(s.wake, j.Name)
		default:
			s.withoutVerdict, s.late = append(s.withoutVerdict, j), true
		}
	}
	return s
}

// timeoutOf is how long a batch waits for a judge, from its creation.
func timeoutOf(in Input, j v1alpha1.Judge) time.Duration {
	if j.TimeoutSeconds == 0 {
		return in.Settings.PostTimeout
	}
	return time.Duration(j.TimeoutSeconds) * time.Second
}

// endOfJudges returns the end of a batch that waits for no judge any more.
func endOfJudges(in Input, server Decision, s judgesState) Decision {
	c := in.ChangePod
	end := done(v1alpha1.BatchPostFinish, "", "", in.Now)
	if c.ServerMustAnswer() {
		end = server
	}
	if len(s.withoutVerdict) == 0 {
		return end
	}
	reason, detail := v1alpha1.ReasonNoVerdict, unjudgedDetail(c, s.withoutVerdict)
	if s.late {
		reason = v1alpha1.ReasonVerdictTimedOut
		if in.Superseded {
			reason, detail = v1alpha1.ReasonSuperseded, "a newer template was applied before "+namesOf(s.withoutVerdict)+" answered"
		}
	}
	if end.Reason != "" {
		end.Detail = strings.TrimPrefix(end.Detail+"; "+detail, "; ")
		return end
	}
	end.Reason, end.Detail = reason, detail
	if s.late && end.Message == v1alpha1.BatchPostFinish {
		end.Message = v1alpha1.BatchPostTimeout
	}
	return end
}

// failedByServer reports whether the server failed a stage of the batch.
func failedByServer(c *v1alpha1.ChangePod) bool {
	return c.Status.VerdictOf(v1alpha1.StagePre).Outcome() == v1alpha1.OutcomeFail ||
		c.Status.VerdictOf(v1alpha1.StagePost).Outcome() == v1alpha1.OutcomeFail
}

// unjudgedDetail says why judges gave neither pass nor fail.
func unjudgedDetail(c *v1alpha1.ChangePod, judges []v1alpha1.Judge) string {
	var out []string
	for _, j := range judges {
		v, record := c.Status.JudgeVerdictOf(j.Name), c.Status.MetricRecord
		switch {
		case v != nil:
			out = append(out, v.Detail())
		case j.Name == v1alpha1.JudgeMetrics && record != nil && record.Message != "":
			out = append(out, "metrics: no verdict in time: "+record.Message)
		case j.Name == v1alpha1.JudgeMetrics:
			out = append(out, "metrics: function judge (config/judge) did not analyze the metrics")
		default:
			out = append(out, "judge "+j.Name+" gave no verdict in time")
		}
	}
	return strings.Join(out, "; ")
}

func namesOf(judges []v1alpha1.Judge) string {
	names := make([]string, len(judges))
	for i, j := range judges {
		names[i] = j.Name
	}
	return "judge " + strings.Join(names, ", ")
}
