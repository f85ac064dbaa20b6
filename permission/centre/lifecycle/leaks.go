package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// leakInterval is how often ScheduleLeaks is called.
	leakInterval = 5 * time.Second
	// maxDueLeaks bounds how many steps of a provider are due when leaks become due, and how many leaks
	// a revocation makes due, because new grants wait for these steps.
	maxDueLeaks = 100
)

// ScheduleLeaks schedules retries of leaked grants whose provider can revoke. Leaked grants of a provider
// that cannot revoke have no scheduled retry.
func (e *Engine) ScheduleLeaks(ctx context.Context) error {
	providers, err := e.Store.View(ctx).ProvidersOfUnscheduledLeaks()
	for _, name := range providers {
		err = errors.Join(err, e.scheduleLeaksOf(ctx, name))
	}
	return err
}

func (e *Engine) scheduleLeaksOf(ctx context.Context, provider string) error {
	v, now := e.Store.View(ctx), e.Clock.Now()
	p, err := e.provider(v, provider)
	if err != nil || !p.CanRevoke {
		return err
	}
	due, err := v.CountDue(provider, now, maxDueLeaks)
	if err != nil || due == maxDueLeaks {
		return err
	}
	return e.Store.WriteInBackground(ctx, func(tx store.Tx) error { return tx.ScheduleLeaks(provider, now, maxDueLeaks-due) })
}
