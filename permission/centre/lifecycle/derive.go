package lifecycle

import (
	"fmt"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Standing is where an application stands as a whole.
type Standing struct {
	State           api.State
	Reason, Message string
}

// Derive follows an application's state from its grants'.
func Derive(going bool, grants []store.Grant) Standing {
	first := func(states ...api.State) *store.Grant {
		for i, g := range grants {
			for _, s := range states {
				if g.State == s {
					return &grants[i]
				}
			}
		}
		return nil
	}
	count := func(state api.State) (n int) {
		for _, g := range grants {
			if g.State == state {
				n++
			}
		}
		return n
	}
	of := func(state api.State, g *store.Grant, verb string) Standing {
		return Standing{state, g.Reason, fmt.Sprintf("permission %s %s: %s (ask %s)", g.Permission, verb, g.Message, g.Owner)}
	}
	if going {
		leaked := first(api.Leaked)
		switch {
		case count(api.Revoked)+count(api.Leaked) < len(grants):
			return Standing{api.Revoking, ReasonRevoking, fmt.Sprintf("%d of %d permissions are taken back", count(api.Revoked), len(grants))}
		case leaked != nil:
			return of(api.Leaked, leaked, "is leaked")
		default:
			return Standing{api.Revoked, string(api.Revoked), "nothing that was granted is left"}
		}
	}
	denied, failed := first(api.Denied), first(api.Failed)
	switch {
	case denied != nil:
		return of(api.Denied, denied, "is denied")
	case failed != nil:
		return of(api.Failed, failed, "failed")
	case count(api.Granted) == len(grants):
		return Standing{api.Granted, string(api.Granted), fmt.Sprintf("all %d permissions are granted", len(grants))}
	case count(api.Requested) == len(grants):
		return Standing{api.Requested, ReasonRequested, "no provider was called yet"}
	default:
		now := first(api.Applying, api.Requested)
		message := now.Message
		if message == "" {
			message = "the provider is being called"
		}
		return Standing{api.Applying, now.Reason, fmt.Sprintf("%d of %d permissions are granted; %s: %s", count(api.Granted), len(grants), now.Permission, message)}
	}
}
