package rollback

import (
	"fmt"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

const (
	// inARow is how often in a row one version is left by itself. Whoever
	// applies it again and again, a GitOps controller for instance, would else
	// be fought for ever.
	inARow = 3
	// named is how many pods a message names.
	named = 3
)

// Situation is what is known of a release from caches.
type Situation struct {
	Now      time.Time
	Settings settings.Settings
	// Release is the one that the ChangeWorkload is about, Phase its state and
	// Reason that of its condition Succeeded.
	Release v1alpha1.Release
	Phase   v1alpha1.WorkloadPhase
	Reason  string
	// Current: the workload is at the release.
	Current bool
	// Rolling: its controller replaces pods by itself. Held: the roll-out is
	// stopped, by whomever. Complete: it is over and all is well.
	Rolling, Held, Complete bool
	// Record is the last rollback, Request what a person asked for; nil when
	// there is none. Garbled: there is a request that does not read.
	Record  *v1alpha1.Rollback
	Request *v1alpha1.RollbackRequest
	Garbled bool
	// Pods are those of the release that are not being deleted.
	Pods []Pod
}

// Cause is why a workload is to go back; Kind is empty when it is not.
type Cause struct {
	Kind v1alpha1.RollbackKind
	// Version is where to; empty leaves it to Choose.
	Version string
	// User is who asked.
	User string
	// Times is for the record: see v1alpha1.Rollback.
	Times int32
	// Message says why, to a person.
	Message string
	// Drop: there is a request that is not to be carried out, because of Message.
	Drop bool
	// Stop: it would go back if that were not done too often already, which
	// Message says.
	Stop bool
	// Again is when time alone can change the answer; zero when it cannot.
	Again time.Time
}

// Due says whether a workload is to go back. It takes one rollback a version
// and attempt for granted: a rollback is another attempt.
func Due(s Situation) Cause {
	switch {
	case !s.Current:
		return Cause{}
	case s.Garbled:
		return Cause{Drop: true, Message: "the request does not read"}
	case s.Request != nil && s.Request.Attempt != s.Release.Attempt:
		return Cause{Drop: true, Message: fmt.Sprintf("it was about attempt %d, and attempt %d is current by now", s.Request.Attempt, s.Release.Attempt)}
	case s.Request != nil:
		return Cause{Kind: v1alpha1.RollbackRequested, Version: s.Request.Version, User: s.Request.User,
			Message: s.Request.User + " asked to go back"}
	case s.Release.Attempt == 0, s.Record != nil && s.Record.Attempt == s.Release.Attempt:
		// Nobody released a baseline, and from a rollback only a person goes back.
		return Cause{}
	case s.Phase == v1alpha1.WorkloadSuspend:
		return s.failed()
	case s.Phase == v1alpha1.WorkloadSuccess:
		return Cause{}
	default:
		return s.stuck()
	}
}

// failed is about a release that failed its check. With isBlockingUp off
// nothing is to be stopped, so nothing is to be changed either.
func (s Situation) failed() Cause {
	if !s.Settings.AutomaticRollback || !s.Settings.Blocking || s.Reason != v1alpha1.ReasonCheckFailed {
		return Cause{}
	}
	return s.limited(Cause{Kind: v1alpha1.RollbackVerdict, Message: "the version failed its check"})
}

// stuck is about a release whose pods do not come up. One of which a pod
// became Ready lately is getting on.
func (s Situation) stuck() Cause {
	if !s.Settings.SelfHealing || !s.Rolling || s.Held || s.Complete {
		return Cause{}
	}
	late := s.Now.Add(-s.Settings.HealAfter)
	var bad []string
	getsOn := false
	for _, p := range s.Pods {
		switch {
		case p.Ready:
			getsOn = getsOn || p.Changed.After(late)
		case p.Trouble != "" && !p.since().After(late):
			bad = append(bad, p.Name+" ("+p.Trouble+")")
		}
	}
	if len(bad) == 0 || getsOn {
		return Cause{Again: s.Now.Add(look(s.Settings.HealAfter))}
	}
	names := strings.Join(bad[:min(named, len(bad))], ", ")
	if len(bad) > named {
		names += ", ..."
	}
	return s.limited(Cause{
		Kind:    v1alpha1.RollbackSelfHealing,
		Message: fmt.Sprintf("%d of %d pods did not come up within %s: %s", len(bad), len(s.Pods), s.Settings.HealAfter, names),
	})
}

// limited stops what was done too often.
func (s Situation) limited(c Cause) Cause {
	c.Times = 1
	if r := s.Record; r != nil && r.FromVersion == s.Release.Version {
		c.Times = r.Times + 1
	}
	if c.Times > inARow {
		return Cause{Stop: true, Message: fmt.Sprintf("%s; it was left %d times in a row and came back, so it stays: a person has to decide", c.Message, inARow)}
	}
	return c
}

// look is how often the pods of a release under way are looked at: often
// enough to be in time, and never more than every second.
func look(healAfter time.Duration) time.Duration {
	return min(max(healAfter/8, time.Second), 15*time.Second)
}
