package lifecycle

import (
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// Reasons beside those of package provider.
const (
	ReasonRequested    = "Requested"
	ReasonCalling      = "CallingProvider"
	ReasonRevoking     = "PodIsGoing"
	ReasonNeverGranted = "NeverGranted"
	ReasonCannotRevoke = "ProviderCannotRevoke"
	ReasonNotRevoked   = "CannotBeTakenBack"
	ReasonHeldByOther  = "HeldByAnotherPod"
	ReasonLetGo        = "PodLetGo"
	ReasonShared       = "HeldByAnotherPodOfTheNode"
	ReasonWaits        = "WaitsForRevocation"
	ReasonGaveUp       = "NoDecisionInTime"
)

// Input is everything that the next step of a grant follows from.
type Input struct {
	State api.State
	// Going: the application is to be revoked.
	Going bool
	// Touched: the provider may have granted it.
	Touched bool
	// Pending: the provider took the request and decides later.
	Pending bool
	// CanRevoke and NodeScoped are the provider's.
	CanRevoke, NodeScoped bool
	// OtherGoing: the same permission is being taken back from the same
	// address, which another pod had. OtherHolds: another pod holds it.
	OtherGoing, OtherHolds bool
}

// Decision is the next step: a call, or a state that needs none.
type Decision struct {
	// Call is empty when there is nothing to call.
	Call provider.Op
	// Wait: there will be something to do, but not yet.
	Wait bool
	// State is the new one; empty when it stays.
	State           api.State
	Reason, Message string
}

// Decide says what is to be done for a grant now.
func Decide(in Input) Decision {
	if in.Going {
		return decideGoing(in)
	}
	switch {
	case in.State != api.Requested && in.State != api.Applying:
		return Decision{}
	case in.Pending:
		return Decision{Call: provider.Poll, State: api.Applying}
	case in.OtherGoing && !in.NodeScoped:
		// Granted now, it would be taken away again.
		return Decision{Wait: true, Reason: ReasonWaits, Message: "the same permission is being taken back from the pod that had this address before"}
	case in.State == api.Requested:
		return Decision{Call: provider.Grant, State: api.Applying, Reason: ReasonCalling, Message: "the provider is being called"}
	default:
		// What the call before said stays until this one says something.
		return Decision{Call: provider.Grant, State: api.Applying}
	}
}

func decideGoing(in Input) Decision {
	switch {
	case in.State == api.Revoked:
		return Decision{}
	case !in.Touched:
		return Decision{State: api.Revoked, Reason: ReasonNeverGranted, Message: "nothing was granted"}
	case in.OtherHolds && in.NodeScoped:
		return Decision{State: api.Revoked, Reason: ReasonShared, Message: "another pod of the node still needs it; it is taken back with the last one"}
	case !in.CanRevoke:
		return Decision{State: api.Leaked, Reason: ReasonCannotRevoke, Message: "the provider cannot take a grant back"}
	case in.OtherHolds:
		// To take it back would take it from the other pod.
		return Decision{State: api.Leaked, Wait: true, Reason: ReasonHeldByOther,
			Message: "another pod has this address and the same permission; it is taken back when that pod goes"}
	case in.State == api.Leaked:
		return Decision{Call: provider.Revoke}
	default:
		return Decision{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevoking, Message: "it is being taken back"}
	}
}
