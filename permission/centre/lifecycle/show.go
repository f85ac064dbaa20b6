package lifecycle

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Show makes an application what the wire says.
func (e *Engine) Show(ctx context.Context, a store.Application, grants []store.Grant) (api.Application, error) {
	shown := api.Application{ID: a.ID, ApplicationRequest: a.Request, State: a.State, Reason: a.Reason, Message: a.Message,
		Attempt: a.Attempt, Created: a.Created, Updated: a.Updated, Version: a.Version, Permissions: make([]api.ApplicationPermission, 0, len(grants))}
	for _, g := range grants {
		p := api.ApplicationPermission{Permission: g.Permission, Provider: g.Provider, Owner: g.Owner, State: g.State,
			Reason: g.Reason, Message: g.Message, Calls: g.Calls, Since: g.Since}
		if !g.NextTry.IsZero() {
			next := g.NextTry.UTC().Truncate(time.Millisecond)
			p.NextTry = &next
		}
		shown.Permissions = append(shown.Permissions, p)
	}
	if a.Going {
		return shown, nil
	}
	var err error
	shown.Leaked, err = e.Leaked(ctx, a.Request)
	return shown, err
}
