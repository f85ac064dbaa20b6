package server

import (
	"cmp"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// Action is the next action of a call.
type Action string

// The actions.
const (
	// Stop: the pod is being deleted or is completed; the call ends.
	Stop Action = "Stop"
	// WaitForPod: wait until the pod changes.
	WaitForPod Action = "WaitForPod"
	// CallAgain: the pod must call from its present address; the call ends.
	CallAgain Action = "CallAgain"
	// ReadApplications: read the pod's applications from the centre.
	ReadApplications Action = "ReadApplications"
	// Complete: all permissions are granted; the call ends.
	Complete Action = "Complete"
	// RecordFailure: count an attempt of Set that was denied or failed; the call ends.
	RecordFailure Action = "RecordFailure"
	// Prepare: run the preparations.
	Prepare Action = "Prepare"
	// RevokeOtherIPs: revoke the grants to addresses of the pod's previous sandbox.
	RevokeOtherIPs Action = "RevokeOtherIPs"
	// AcquireBreaker: ask the breaker whether an attempt may begin.
	AcquireBreaker Action = "AcquireBreaker"
	// Apply: request Set from the centre.
	Apply Action = "Apply"
	// Poll: wait until the application of Set changes.
	Poll Action = "Poll"
	// WaitForBreaker: the breaker is open; wait until Until or until it changes.
	WaitForBreaker Action = "WaitForBreaker"
)

// Input is the input of Decide.
type Input struct {
	// DeletedOrCompleted: the pod is being deleted or does not exist, or its phase is Succeeded or Failed.
	DeletedOrCompleted bool
	// IPs are the pod's addresses.
	IPs []string
	// OtherSource: the call does not come from one of IPs, and the pod does not have hostNetwork.
	OtherSource bool
	// HasFinalizer: the pod cannot be deleted before its permissions are revoked.
	HasFinalizer bool
	// Sets are the permission sets that the pod requests.
	Sets []string
	// ApplicationsKnown: Applications and OtherIPs were read.
	ApplicationsKnown bool
	// Applications are the applications for exactly IPs, by set.
	Applications map[string]api.Application
	// OtherIPs: the pod has unrevoked applications for other addresses.
	OtherIPs bool
	// Breaker is the state of the pod's breaker.
	Breaker podbreaker.Decision
	// Prepared: this call ran the preparations.
	Prepared bool
	// BreakerAcquired: the breaker allowed this call to begin an attempt.
	BreakerAcquired bool
}

// Decision is the next action and its reason.
type Decision struct {
	Action Action
	Set    string
	Until  time.Time
	// Reason is a reason constant of package podmeta, for the condition.
	Reason string
}

// Decide returns the next action.
func Decide(in Input) Decision {
	switch {
	case in.DeletedOrCompleted:
		return Decision{Action: Stop, Reason: podmeta.ReasonPodTerminating}
	case len(in.IPs) == 0:
		return Decision{Action: WaitForPod, Reason: podmeta.ReasonWaitingForPodIP}
	case in.OtherSource:
		// A kubelet writes the status of its pods. The centre would revoke the grants of another pod with this address.
		return Decision{Action: CallAgain, Reason: reasonSourceAddressMismatch}
	case !in.HasFinalizer:
		// Without the finalizer the pod could disappear before its grants are revoked,
		// and a finalizer cannot be added to a terminating pod.
		return Decision{Action: WaitForPod, Reason: podmeta.ReasonWaitingForFinalizer}
	case !in.ApplicationsKnown:
		return Decision{Action: ReadApplications, Reason: podmeta.ReasonRegistering}
	case in.OtherIPs:
		// Also if the pod may begin no attempt: another pod may have such an address.
		return Decision{Action: RevokeOtherIPs, Reason: podmeta.ReasonPermissionRevoking}
	}
	var apply, poll string
	granted := 0
	for _, set := range in.Sets {
		app, ok := in.Applications[set]
		switch {
		case ok && app.State == api.Granted:
			granted++
		case ok && isDeniedOrFailed(app.State) && in.Breaker.Entry.Counted[app.ID] < app.Attempt:
			return Decision{Action: RecordFailure, Set: set, Reason: reasonForState(app.State)}
		case ok && (app.State == api.Requested || app.State == api.Applying || app.State == api.Revoking):
			// Grants of a previous sandbox at this address are revoked first.
			poll = cmp.Or(poll, set)
		default:
			apply = cmp.Or(apply, set)
		}
	}
	switch {
	case granted == len(in.Sets):
		return Decision{Action: Complete, Reason: podmeta.ReasonPermissionGranted}
	case apply != "" && in.Breaker.State == podbreaker.MayBegin:
		return prepareApply(in, apply)
	case poll != "":
		return Decision{Action: Poll, Set: poll, Reason: reasonForState(in.Applications[poll].State)}
	}
	return waitForBreaker(in)
}

// prepareApply returns the action that must precede the request of a set, or Apply.
func prepareApply(in Input, set string) Decision {
	_, retried := in.Applications[set]
	switch {
	case !in.Prepared:
		return Decision{Action: Prepare, Reason: podmeta.ReasonRegistering}
	case (retried || in.Breaker.Exists) && !in.BreakerAcquired:
		// The first attempt does not need the breaker, because a repeated request returns
		// the same application.
		return Decision{Action: AcquireBreaker, Reason: podmeta.ReasonPermissionRequested}
	}
	return Decision{Action: Apply, Set: set, Reason: podmeta.ReasonPermissionRequested}
}

// waitForBreaker returns WaitForBreaker with the reason of the breaker's state.
func waitForBreaker(in Input) Decision {
	switch in.Breaker.State {
	case podbreaker.OpenDenied:
		return Decision{Action: WaitForBreaker, Reason: podmeta.ReasonBreakerOpenDenied}
	case podbreaker.OpenFailed:
		return Decision{Action: WaitForBreaker, Until: in.Breaker.Next, Reason: podmeta.ReasonBreakerOpenFailed}
	}
	return Decision{Action: WaitForBreaker, Until: in.Breaker.Next, Reason: podmeta.ReasonPermissionRequested}
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
