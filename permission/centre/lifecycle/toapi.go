package lifecycle

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// ToAPI converts an application to its API type.
func (e *Engine) ToAPI(ctx context.Context, a store.Application, grants []store.Grant) (api.Application, error) {
	out := api.Application{ID: a.ID, ApplicationRequest: a.Request, State: a.State, Reason: a.Reason, Message: a.Message,
		Attempt: a.Attempt, Created: a.Created, Updated: a.Updated, Version: a.Version, Permissions: make([]api.ApplicationPermission, 0, len(grants))}
	for _, g := range grants {
		p := api.ApplicationPermission{Permission: g.Permission, Provider: g.Provider, Owner: g.Owner, State: g.State,
			Reason: g.Reason, Message: g.Message, Calls: g.Calls, Since: g.Since}
		if !g.NextTry.IsZero() {
			next := g.NextTry.UTC().Truncate(time.Millisecond)
			p.NextTry = &next
		}
		out.Permissions = append(out.Permissions, p)
	}
	if a.RevokeRequested {
		return out, nil
	}
	var err error
	out.Leaked, err = e.Leaked(ctx, a.Request)
	return out, err
}
