package lifecycle

import (
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Reasons of grants and applications, in addition to those of package provider.
const (
	ReasonRequested                  = "Requested"
	ReasonCallingProvider            = "CallingProvider"
	ReasonRevocationRequested        = "RevocationRequested"
	ReasonNeverGranted               = "NeverGranted"
	ReasonProviderCannotRevoke       = "ProviderCannotRevoke"
	ReasonHeldByAnotherPod           = "HeldByAnotherPod"
	ReasonHeldByAnotherPodOnNode     = "HeldByAnotherPodOnNode"
	ReasonHeldByAnotherSet           = "HeldByAnotherSet"
	ReasonHeldUnderOtherCluster      = "HeldUnderOtherCluster"
	ReasonRevocationDeadlineExceeded = "RevocationDeadlineExceeded"
	ReasonWaitingForRevocation       = "WaitingForRevocation"
	ReasonDecisionTimeout            = "DecisionTimeout"
	ReasonAcknowledged               = "Acknowledged"
)

// indistinct names a permission that a revocation of the grant would remove.
const indistinct = "the same permission, or one that the provider cannot distinguish from it"

// Input has the facts that determine the next step of a grant.
type Input struct {
	State api.State
	// RevokeRequested: the application is to be revoked.
	RevokeRequested bool
	// MaybeGranted: the provider may have granted it.
	MaybeGranted bool
	// Pending: the provider accepted the grant, or the revocation if RevokeRequested, and decides later.
	Pending bool
	// CanRevoke and NodeScoped are fields of the provider.
	CanRevoke, NodeScoped bool
	// Overlap describes the grants of other applications that the revocation of this grant would remove.
	// UsedInCluster: another pod of the cluster uses one, which is revoked when that pod ends.
	// CoveredInCluster or CoveredByPod: the grant of that pod, or of another permission set of this pod, includes
	// this grant, and its revocation also removes this grant. UsedByOtherClusterName: the cluster
	// was probably renamed, so that nobody revokes the grant of the other name.
	store.Overlap
	// ExclusiveCallPossible: a call to the provider for another permission of the same database
	// user may be in progress, and that call removes all other permissions.
	ExclusiveCallPossible bool
	// RevocationBegins: the revocation has not waited for another grant, and no result of its call is known. A pod that ends
	// may not have revoked its other permission sets yet.
	RevocationBegins bool
}

// Decision is the next step: a call, a wait or a new state.
type Decision struct {
	// Call is empty if no call is needed.
	Call provider.Op
	// Wait: the decision is repeated later.
	Wait bool
	// State is the new state; empty if it does not change.
	State           api.State
	Reason, Message string
}

// Decide returns the next step of a grant.
func Decide(in Input) Decision {
	if in.RevokeRequested {
		return decideRevoke(in)
	}
	switch {
	case in.State != api.Requested && in.State != api.Applying:
		return Decision{}
	case in.Pending:
		return Decision{Call: provider.Poll, State: api.Applying}
	case in.Revoking && !in.NodeScoped && !in.MaybeGranted, in.RevokeSent:
		// The other revocation may remove the new grant. A revocation that is not sent yet finds a node-scoped grant, or
		// one whose earlier call has no known result, and does not remove it.
		return Decision{Wait: true, Reason: ReasonWaitingForRevocation, Message: indistinct + ", is being revoked for the previous pod with this address, or for another set"}
	case in.ExclusiveCallPossible:
		return Decision{Wait: true, Reason: ReasonCallingProvider, Message: "the provider is being called for another permission of the same user"}
	case in.State == api.Requested:
		return Decision{Call: provider.Grant, State: api.Applying, Reason: ReasonCallingProvider, Message: "the provider is being called"}
	default:
		// Keep the reason and message of the previous call until this one ends.
		return Decision{Call: provider.Grant, State: api.Applying}
	}
}

func decideRevoke(in Input) Decision {
	switch {
	case in.State == api.Revoked:
		return Decision{}
	case !in.MaybeGranted:
		return Decision{State: api.Revoked, Reason: ReasonNeverGranted, Message: "nothing was granted"}
	case in.Pending:
		// The provider revokes it at any time, also if it accepts no other revocation. No other application is granted it meanwhile.
		return callRevoke(in.State)
	case in.CoveredByPod:
		return Decision{State: api.Revoked, Reason: ReasonHeldByAnotherSet, Message: "another permission set of this pod needs " + indistinct + "; it is revoked with the last of these sets"}
	case in.UndecidedByPod:
		// The result for that set decides whether this grant must be revoked.
		return Decision{Wait: true, Reason: ReasonHeldByAnotherSet, Message: "the provider is being called, or has not decided yet, for another permission set of this pod"}
	case in.UsedByOtherClusterName:
		// A call would remove the grant of the other name. Its cluster may exist.
		return Decision{State: api.Leaked, Wait: true, Reason: ReasonHeldUnderOtherCluster,
			Message: "the pod also has " + indistinct + ", under another name of its cluster, and only that name can revoke it: " +
				"set key cluster of ConfigMap config-permission to that name, or revoke the application of the pod under that name"}
	case in.CalledByOtherPod && in.NodeScoped:
		// The result of that call decides whether the other pod will revoke this grant.
		return Decision{Wait: true, Reason: ReasonHeldByAnotherPodOnNode, Message: "the provider is being called for another pod on the node"}
	case in.CoveredInCluster && in.NodeScoped:
		return Decision{State: api.Revoked, Reason: ReasonHeldByAnotherPodOnNode, Message: "another pod on the node needs " + indistinct + "; it is revoked with the last of these pods"}
	case in.UndecidedInCluster && in.NodeScoped:
		// The answer may have the id that distinguishes the grant of the other pod from this one.
		return Decision{Wait: true, Reason: ReasonHeldByAnotherPodOnNode, Message: "the provider has not decided yet for another pod on the node"}
	case !in.CanRevoke:
		return Decision{State: api.Leaked, Reason: ReasonProviderCannotRevoke, Message: "the provider cannot revoke grants"}
	case in.UsedByOtherPod && !in.UsedInCluster:
		// The cluster may have been renamed, so that nobody revokes the grant of that pod.
		return Decision{State: api.Leaked, Wait: true, Reason: ReasonHeldUnderOtherCluster,
			Message: "another pod with this address has " + indistinct + ", under another cluster name; this grant is revoked after the application of that pod is revoked"}
	case (in.GrantedToPod || in.UnknownToPod) && in.RevocationBegins:
		return Decision{Wait: true, Reason: ReasonHeldByAnotherSet, Message: "another permission set of this pod needs a part of this grant; this grant is revoked after the grant of that set"}
	case in.GrantedToPod, in.UnknownToPod:
		return Decision{State: api.Leaked, Wait: true, Reason: ReasonHeldByAnotherSet,
			Message: "another permission set of this pod needs " + indistinct + ", at least for some of the addresses, or the same user of the database; " +
				"this grant is revoked after the grant of that set"}
	case in.UsedByOtherPod:
		// Revoking it would remove the grant of the other pod.
		return Decision{State: api.Leaked, Wait: true, Reason: ReasonHeldByAnotherPod,
			Message: "another pod has this address and " + indistinct + ", or the same user of the database; this leaked grant is revoked together with the grant of that pod"}
	default:
		return callRevoke(in.State)
	}
}

func callRevoke(state api.State) Decision {
	if state == api.Leaked {
		return Decision{Call: provider.Revoke}
	}
	return Decision{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested, Message: "the permission is being revoked"}
}
