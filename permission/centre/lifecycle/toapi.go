package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// maxLeaks bounds the leaked grants of an application at one of its addresses.
const maxLeaks = 20

// ToAPI converts an application to its API type.
func (e *Engine) ToAPI(ctx context.Context, a store.Application, grants []store.Grant) (api.Application, error) {
	out := toAPI(a, grants)
	if a.RevokeRequested {
		return out, nil
	}
	var err error
	out.Leaked, err = e.Leaked(ctx, a.Request)
	return out, err
}

// ListToAPI converts applications to their API type. It reads the grants and leaks of all
// of them at once.
func (e *Engine) ListToAPI(ctx context.Context, apps []store.Application) ([]api.Application, error) {
	ids := make([]string, len(apps))
	var ips []string
	for i, a := range apps {
		if ids[i] = a.ID; !a.RevokeRequested {
			ips = append(ips, a.Request.PodIPs...)
		}
	}
	v := e.Store.View(ctx)
	grants, err := v.GrantsOf(ids)
	if err != nil {
		return nil, err
	}
	slices.Sort(ips)
	leaks, err := v.LeakedAt(slices.Compact(ips))
	if err != nil {
		return nil, err
	}
	items := make([]api.Application, len(apps))
	for i, a := range apps {
		if items[i] = toAPI(a, grants[a.ID]); !a.RevokeRequested {
			items[i].Leaked = leakedTo(a.Request, leaks)
		}
	}
	return items, nil
}

// leakedTo returns the leaked grants of other pods at the addresses of a pod.
func leakedTo(r api.ApplicationRequest, leaks []store.Leak) []api.LeakedGrant {
	var all []api.LeakedGrant
	for _, ip := range r.PodIPs {
		n := 0
		for _, l := range leaks {
			if l.IP == ip && l.Cluster == r.Cluster && l.PodUID != r.PodUID && n < maxLeaks {
				all = append(all, l.LeakedGrant)
				n++
			}
		}
	}
	return all
}

func toAPI(a store.Application, grants []store.Grant) api.Application {
	out := api.Application{ID: a.ID, ApplicationRequest: a.Request, State: a.State, Reason: a.Reason, Message: a.Message,
		Attempt: a.Attempt, Created: a.Created, Updated: a.Updated, Version: a.Version, Permissions: make([]api.ApplicationPermission, 0, len(grants))}
	for _, g := range grants {
		p := api.ApplicationPermission{Permission: g.Permission, Provider: g.Provider, Owner: g.Owner, State: g.State,
			Reason: g.Reason, Message: g.Message, Calls: g.Calls, Since: g.Since}
		if !g.NextTry.IsZero() {
			p.NextTry = new(g.NextTry.UTC().Truncate(time.Millisecond))
		}
		out.Permissions = append(out.Permissions, p)
	}
	return out
}
