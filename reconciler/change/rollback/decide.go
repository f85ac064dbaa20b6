package rollback

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

const (
	// maxConsecutive is how many times in a row one version is rolled back
	// automatically. Without a limit, Breakwater and a GitOps controller that
	// applies it again would never stop.
	maxConsecutive = 3
	// maxNamed is how many pods a message names.
	maxNamed = 3
)

// Input is the input of Decide, read from caches.
type Input struct {
	Now      time.Time
	Settings settings.Settings
	// Release is that of the ChangeWorkload, Phase its state, Reason that of
	// its condition Succeeded.
	Release v1alpha1.Release
	Phase   v1alpha1.ReleasePhase
	Reason  string
	// Began is when the release began if the kind updates pods in place: an older fault or
	// restart of a pod is not of this release. Otherwise it is zero.
	Began time.Time
	// Current: the release is the workload's current one.
	Current bool
	// ReplacesGradually is that of the workload. PausedOrHeld: the rollout is stopped, by
	// Breakwater or a user. Complete: the rollout is complete.
	ReplacesGradually, PausedOrHeld, Complete bool
	// Last is the last rollback and Request the rollback request of a person;
	// nil if there is none. RequestMalformed: the request cannot be parsed.
	Last             *v1alpha1.Rollback
	Request          *v1alpha1.RollbackRequest
	RequestMalformed bool
	// Pods are the pods of the release that are neither terminating nor on a node that is not Ready.
	Pods []Pod
}

// Decision is whether a rollback is due, and why; Kind is empty if none is.
type Decision struct {
	Kind v1alpha1.RollbackKind
	// Version is the requested target; if empty, Choose decides.
	Version string
	// User requested the rollback.
	User string
	// Times is copied to the rollback: see v1alpha1.Rollback.
	Times int32
	// Message is the reason, for people.
	Message string
	// Drop: the request is dropped, because of Message.
	Drop bool
	// LimitReached: the rollback is due, but the limit of consecutive ones is reached;
	// Message says so.
	LimitReached bool
	// NextCheck is when the result can change without an event; zero means never.
	NextCheck time.Time
}

// Decide decides whether a rollback is due. A version and attempt is rolled back
// at most once, because the rollback is a new attempt.
func Decide(in Input) Decision {
	switch {
	case !in.Current:
		return Decision{}
	case in.RequestMalformed:
		return Decision{Drop: true, Message: "the request cannot be parsed"}
	case in.Request != nil && in.Request.Attempt != in.Release.Attempt:
		return Decision{Drop: true, Message: fmt.Sprintf("it names attempt %d, but attempt %d is current", in.Request.Attempt, in.Release.Attempt)}
	case in.Request != nil:
		return Decision{Kind: v1alpha1.RollbackRequested, Version: in.Request.Version, User: in.Request.User,
			Message: in.Request.User + " requested it"}
	case in.Release.Attempt == 0, in.Last != nil && in.Last.Attempt == in.Release.Attempt:
		// A baseline began no rollout, and only a person can roll back a
		// rollback by Breakwater.
		return Decision{}
	case in.Phase == v1alpha1.ReleaseSuspend:
		return decideFailed(in)
	case in.Phase == v1alpha1.ReleaseSuccess:
		return Decision{}
	default:
		return decideStuck(in)
	}
}

// decideFailed decides for a release that failed its check. With isBlockingUp off
// nothing is stopped, so nothing is rolled back either.
func decideFailed(in Input) Decision {
	if !in.Settings.AutomaticRollback || !in.Settings.Blocking || !v1alpha1.IsFailedCheckReason(in.Reason) {
		return Decision{}
	}
	return limitConsecutive(in, Decision{Kind: v1alpha1.RollbackVerdict, Message: "the version failed (" + in.Reason + ")"})
}

// decideStuck decides for a release that has not succeeded and is not suspended; it may have failed, for
// example because it timed out. It is stuck if a pod has had a fault for
// HealAfter, and no pod became Ready in that time. A Ready pod that has crashed three times counts here only while more
// such pods are Ready than pods have such a fault: then the version recovers. A pod that has ended counts only while no other one
// is without a fault: then it may be that nodes reject each pod of the version. Otherwise it was evicted, and another one replaced it.
// A pod that waits for its node counts only while no pod is Ready: otherwise the cluster is the cause, and not the version.
func decideStuck(in Input) Decision {
	if !in.Settings.SelfHealing || !in.ReplacesGradually || in.PausedOrHeld || in.Complete {
		return Decision{}
	}
	late := in.Now.Add(-in.Settings.HealAfter)
	pods := in.Pods
	if slices.ContainsFunc(pods, func(p Pod) bool { return p.Ready || !p.Ended && p.Fault == "" }) {
		pods = slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Ended })
	}
	anyReady := slices.ContainsFunc(pods, func(p Pod) bool { return p.Ready })
	var bad []string
	progressing, recovering, readyAgain := false, false, 0
	for _, p := range pods {
		switch {
		case p.Ready && p.inCrashLoop(in.Began):
			readyAgain++
			recovering = recovering || p.Changed.After(late)
		case p.Ready:
			progressing = progressing || p.Changed.After(late)
		case anyReady && p.waitsForNode():
		case p.Fault != "" && !p.since().After(late) && !in.Began.After(late):
			bad = append(bad, p.Name+" ("+p.Fault+")")
		}
	}
	if len(bad) == 0 || progressing || recovering && readyAgain > len(bad) {
		return Decision{NextCheck: in.Now.Add(checkInterval(in.Settings.HealAfter))}
	}
	recovered := "none"
	if recovering {
		recovered = "too few"
	}
	names := strings.Join(bad[:min(maxNamed, len(bad))], ", ")
	if len(bad) > maxNamed {
		names += ", ..."
	}
	return limitConsecutive(in, Decision{
		Kind:    v1alpha1.RollbackSelfHealing,
		Message: fmt.Sprintf("%d of %d pods did not run for %s, and %s recovered: %s", len(bad), len(pods), in.Settings.HealAfter, recovered, names),
	})
}

// limitConsecutive applies maxConsecutive. A release between does not begin the count again: a second writer and a GitOps controller
// could otherwise repeat the version without end.
func limitConsecutive(in Input, d Decision) Decision {
	d.Times = 1
	if r := in.Last; r != nil && r.FromVersion == in.Release.Version {
		d.Times = r.Times + 1
	}
	if d.Times > maxConsecutive {
		return Decision{LimitReached: true, Message: fmt.Sprintf("%s; it was rolled back %d times in a row and applied again, so it stays until a person decides", d.Message, maxConsecutive)}
	}
	return d
}

// checkInterval is the interval of checking the pods of a running release: short enough to
// detect a stuck release in time, at least a second.
func checkInterval(healAfter time.Duration) time.Duration {
	return min(max(healAfter/8, time.Second), 15*time.Second)
}
