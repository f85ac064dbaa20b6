package lifecycle

import (
	"fmt"
	"slices"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Status is the derived status of an application.
type Status struct {
	State           api.State
	Reason, Message string
}

// Derive returns the status of an application from its grants.
func Derive(revokeRequested bool, grants []store.Grant) Status {
	first := func(states ...api.State) *store.Grant {
		i := slices.IndexFunc(grants, func(g store.Grant) bool { return slices.Contains(states, g.State) })
		if i < 0 {
			return nil
		}
		return &grants[i]
	}
	count := func(state api.State) (n int) {
		for _, g := range grants {
			if g.State == state {
				n++
			}
		}
		return n
	}
	of := func(state api.State, g *store.Grant, verb string) Status {
		return Status{state, g.Reason, fmt.Sprintf("permission %s %s: %s (ask %s)", g.Permission, verb, g.Message, g.Owner)}
	}
	if revokeRequested {
		leaked, kept := first(api.Leaked), keptForAnother(grants)
		switch {
		case count(api.Revoked)+count(api.Leaked) < len(grants):
			return Status{api.Revoking, ReasonRevocationRequested, fmt.Sprintf("%d of %d permissions are revoked", count(api.Revoked), len(grants))}
		case leaked != nil:
			return of(api.Leaked, leaked, "is leaked")
		case kept != nil:
			return of(api.Revoked, kept, "is kept")
		default:
			return Status{api.Revoked, string(api.Revoked), "all permissions are revoked"}
		}
	}
	denied, failed := first(api.Denied), first(api.Failed)
	switch {
	case denied != nil:
		return of(api.Denied, denied, "is denied")
	case failed != nil:
		return of(api.Failed, failed, "failed")
	case count(api.Granted) == len(grants):
		return Status{api.Granted, string(api.Granted), fmt.Sprintf("all %d permissions are granted", len(grants))}
	case count(api.Requested) == len(grants):
		return Status{api.Requested, ReasonRequested, "no provider has been called in this attempt"}
	default:
		current := first(api.Applying, api.Requested)
		message := current.Message
		switch {
		case message != "":
		case current.State == api.Requested:
			message = "the call to the provider waits for its turn"
		default:
			message = "the provider is being called"
		}
		return Status{api.Applying, current.Reason, fmt.Sprintf("%d of %d permissions are granted; %s: %s", count(api.Granted), len(grants), current.Permission, message)}
	}
}

// keptForAnother returns a grant that this application does not need any more, but another
// permission set of the pod or another pod on the node does; nil if there is none.
func keptForAnother(grants []store.Grant) *store.Grant {
	for i, g := range grants {
		if g.State == api.Revoked && (g.Reason == ReasonHeldByAnotherSet || g.Reason == ReasonHeldByAnotherPodOnNode) {
			return &grants[i]
		}
	}
	return nil
}
