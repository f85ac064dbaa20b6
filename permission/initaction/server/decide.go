package server

import (
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// Action is the next step for a pod.
type Action string

// The actions.
const (
	// Stop: the pod is going; it gets nothing.
	Stop Action = "Stop"
	// AwaitPod: wait until the pod changes.
	AwaitPod Action = "AwaitPod"
	// Read the pod's applications.
	Read Action = "Read"
	// Grant: everything was granted; the call ends.
	Grant Action = "Grant"
	// Settle counts an attempt of Set that was denied or failed; the call ends.
	Settle Action = "Settle"
	// Register takes the steps before permissions.
	Register Action = "Register"
	// RevokeOthers takes back what was granted to the addresses of the pod's
	// former sandbox.
	RevokeOthers Action = "RevokeOthers"
	// Begin asks the breaker whether an attempt may begin.
	Begin Action = "Begin"
	// Ask the centre for Set.
	Ask Action = "Ask"
	// Poll the application of Set.
	Poll Action = "Poll"
	// Hold: the breaker is open; wait until Until, or until it changes.
	Hold Action = "Hold"
)

// Facts are what Decide decides by.
type Facts struct {
	// Going: the pod is being deleted, or has ended.
	Going bool
	// IPs are the pod's addresses.
	IPs []string
	// Finalizer: the pod cannot go without its permissions being revoked.
	Finalizer bool
	// Sets are what it asks for.
	Sets []string
	// Known: Applications and Others were read.
	Known bool
	// Applications are those for exactly IPs, by set.
	Applications map[string]api.Application
	// Others: something is granted, or on its way, to other addresses of the pod.
	Others bool
	// Breaker is what is known of the pod's failures.
	Breaker podbreaker.Decision
	// Registered: the steps before permissions were taken in this call.
	Registered bool
	// Admitted: the breaker let this call begin an attempt.
	Admitted bool
}

// Decision is the next step and why.
type Decision struct {
	Action Action
	Set    string
	Until  time.Time
	// Reason is for people: one of the constants of permission/podmeta.
	Reason string
}

// Decide returns the next step.
func Decide(f Facts) Decision {
	switch {
	case f.Going:
		return Decision{Action: Stop, Reason: podmeta.ReasonTerminating}
	case len(f.IPs) == 0:
		return Decision{Action: AwaitPod, Reason: podmeta.ReasonNoIP}
	case !f.Finalizer:
		// What is granted to a pod that can vanish might never be revoked, and a
		// finalizer cannot be added to one that is going.
		return Decision{Action: AwaitPod, Reason: podmeta.ReasonNoFinalizer}
	case !f.Known:
		return Decision{Action: Read, Reason: podmeta.ReasonRegistering}
	}
	var ask, poll string
	granted := 0
	for _, set := range f.Sets {
		app, ok := f.Applications[set]
		switch {
		case ok && app.State == api.Granted:
			granted++
		case ok && failedState(app.State) && f.Breaker.Entry.Settled[app.ID] < app.Attempt:
			return Decision{Action: Settle, Set: set, Reason: reasonOf(app.State)}
		case ok && (app.State == api.Requested || app.State == api.Applying || app.State == api.Revoking):
			// What a former sandbox had at this address is taken back first.
			poll = first(poll, set)
		default:
			ask = first(ask, set)
		}
	}
	switch {
	case granted == len(f.Sets):
		return Decision{Action: Grant, Reason: podmeta.ReasonGranted}
	case ask != "" && f.Breaker.Outcome == podbreaker.Closed:
		return begin(f, ask)
	case poll != "":
		return Decision{Action: Poll, Set: poll, Reason: reasonOf(f.Applications[poll].State)}
	}
	return hold(f)
}

// begin says what comes before a set is asked for.
func begin(f Facts, set string) Decision {
	_, again := f.Applications[set]
	switch {
	case !f.Registered:
		return Decision{Action: Register, Reason: podmeta.ReasonRegistering}
	case f.Others:
		return Decision{Action: RevokeOthers, Reason: podmeta.ReasonRevoking}
	case (again || f.Breaker.Exists) && !f.Admitted:
		// The first attempt needs no leave: asking twice for it is asking once.
		return Decision{Action: Begin, Reason: podmeta.ReasonRequested}
	}
	return Decision{Action: Ask, Set: set, Reason: podmeta.ReasonRequested}
}

func hold(f Facts) Decision {
	switch f.Breaker.Outcome {
	case podbreaker.OpenDenied:
		return Decision{Action: Hold, Reason: podmeta.ReasonBreakerDenied}
	case podbreaker.OpenFailed:
		return Decision{Action: Hold, Until: f.Breaker.Next, Reason: podmeta.ReasonBreakerFailed}
	}
	return Decision{Action: Hold, Until: f.Breaker.Next, Reason: podmeta.ReasonRequested}
}

func failedState(s api.State) bool { return s == api.Denied || s == api.Failed }

func reasonOf(s api.State) string {
	switch s {
	case api.Requested:
		return podmeta.ReasonRequested
	case api.Granted:
		return podmeta.ReasonGranted
	case api.Denied:
		return podmeta.ReasonDenied
	case api.Failed:
		return podmeta.ReasonFailed
	case api.Revoking:
		return podmeta.ReasonRevoking
	case api.Revoked:
		return podmeta.ReasonRevoked
	case api.Leaked:
		return podmeta.ReasonLeaked
	}
	return podmeta.ReasonApplying
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
