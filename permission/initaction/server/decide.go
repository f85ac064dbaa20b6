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
	WaitForPod Action = "WaitForPod"
	// Read the pod's applications.
	ReadApplications Action = "ReadApplications"
	// Grant: everything was granted; the call ends.
	Complete Action = "Complete"
	// Settle counts an attempt of Set that was denied or failed; the call ends.
	RecordFailure Action = "RecordFailure"
	// Register takes the steps before permissions.
	Register Action = "Register"
	// RevokeOthers takes back what was granted to the addresses of the pod's
	// former sandbox.
	RevokeOtherIPs Action = "RevokeOtherIPs"
	// Begin asks the breaker whether an attempt may begin.
	AcquireBreaker Action = "AcquireBreaker"
	// Ask the centre for Set.
	Apply Action = "Apply"
	// Poll the application of Set.
	Poll Action = "Poll"
	// Hold: the breaker is open; wait until Until, or until it changes.
	WaitForBreaker Action = "WaitForBreaker"
)

// Facts are what Decide decides by.
type Facts struct {
	// Going: the pod is being deleted, or has ended.
	Terminating bool
	// IPs are the pod's addresses.
	IPs []string
	// Finalizer: the pod cannot go without its permissions being revoked.
	HasFinalizer bool
	// Sets are what it asks for.
	Sets []string
	// Known: Applications and Others were read.
	ApplicationsKnown bool
	// Applications are those for exactly IPs, by set.
	Applications map[string]api.Application
	// Others: something is granted, or on its way, to other addresses of the pod.
	OtherIPs bool
	// Breaker is what is known of the pod's failures.
	Breaker podbreaker.Decision
	// Registered: the steps before permissions were taken in this call.
	Registered bool
	// Admitted: the breaker let this call begin an attempt.
	BreakerAcquired bool
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
	case f.Terminating:
		return Decision{Action: Stop, Reason: podmeta.ReasonPodTerminating}
	case len(f.IPs) == 0:
		return Decision{Action: WaitForPod, Reason: podmeta.ReasonWaitingForPodIP}
	case !f.HasFinalizer:
		// What is granted to a pod that can vanish might never be revoked, and a
		// finalizer cannot be added to one that is going.
		return Decision{Action: WaitForPod, Reason: podmeta.ReasonWaitingForFinalizer}
	case !f.ApplicationsKnown:
		return Decision{Action: ReadApplications, Reason: podmeta.ReasonRegistering}
	}
	var ask, poll string
	granted := 0
	for _, set := range f.Sets {
		app, ok := f.Applications[set]
		switch {
		case ok && app.State == api.Granted:
			granted++
		case ok && isDeniedOrFailed(app.State) && f.Breaker.Entry.Settled[app.ID] < app.Attempt:
			return Decision{Action: RecordFailure, Set: set, Reason: reasonForState(app.State)}
		case ok && (app.State == api.Requested || app.State == api.Applying || app.State == api.Revoking):
			// What a former sandbox had at this address is taken back first.
			poll = first(poll, set)
		default:
			ask = first(ask, set)
		}
	}
	switch {
	case granted == len(f.Sets):
		return Decision{Action: Complete, Reason: podmeta.ReasonPermissionGranted}
	case ask != "" && f.Breaker.Outcome == podbreaker.Closed:
		return prepareApply(f, ask)
	case poll != "":
		return Decision{Action: Poll, Set: poll, Reason: reasonForState(f.Applications[poll].State)}
	}
	return waitForBreaker(f)
}

// begin says what comes before a set is asked for.
func prepareApply(f Facts, set string) Decision {
	_, again := f.Applications[set]
	switch {
	case !f.Registered:
		return Decision{Action: Register, Reason: podmeta.ReasonRegistering}
	case f.OtherIPs:
		return Decision{Action: RevokeOtherIPs, Reason: podmeta.ReasonPermissionRevoking}
	case (again || f.Breaker.Exists) && !f.BreakerAcquired:
		// The first attempt needs no leave: asking twice for it is asking once.
		return Decision{Action: AcquireBreaker, Reason: podmeta.ReasonPermissionRequested}
	}
	return Decision{Action: Apply, Set: set, Reason: podmeta.ReasonPermissionRequested}
}

func waitForBreaker(f Facts) Decision {
	switch f.Breaker.Outcome {
	case podbreaker.OpenDenied:
		return Decision{Action: WaitForBreaker, Reason: podmeta.ReasonBreakerOpenDenied}
	case podbreaker.OpenFailed:
		return Decision{Action: WaitForBreaker, Until: f.Breaker.Next, Reason: podmeta.ReasonBreakerOpenFailed}
	}
	return Decision{Action: WaitForBreaker, Until: f.Breaker.Next, Reason: podmeta.ReasonPermissionRequested}
}

func isDeniedOrFailed(s api.State) bool { return s == api.Denied || s == api.Failed }

func reasonForState(s api.State) string {
	switch s {
	case api.Requested:
		return podmeta.ReasonPermissionRequested
	case api.Granted:
		return podmeta.ReasonPermissionGranted
	case api.Denied:
		return podmeta.ReasonPermissionDenied
	case api.Failed:
		return podmeta.ReasonPermissionFailed
	case api.Revoking:
		return podmeta.ReasonPermissionRevoking
	case api.Revoked:
		return podmeta.ReasonPermissionRevoked
	case api.Leaked:
		return podmeta.ReasonPermissionLeaked
	}
	return podmeta.ReasonPermissionApplying
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
