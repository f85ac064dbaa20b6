package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// maxStartAhead is the longest time before its slot at which a step is started.
	maxStartAhead = 500 * time.Millisecond
	// maxCallDelay is how long after its first slot a call may begin, finishMargin the time for
	// the transaction that ends the step. A run expires after the slot, both of these and
	// the timeout of the provider.
	maxCallDelay = 2 * time.Second
	finishMargin = 3 * time.Second
	// maxSteps bounds the steps of one transaction.
	maxSteps = 64
	// recheckInterval is the delay of a step that waits, for example for the revocation
	// of another pod.
	recheckInterval = time.Second
	// brokenStepDelay is the delay after which a step that could not be started is
	// started again.
	brokenStepDelay = time.Minute
)

// errStaleStep: the run of a step expired, and the step was started again, perhaps by another replica.
var errStaleStep = errors.New("stale step")

// step is a started step: a call whose intent is stored.
type step struct {
	application string
	ordinal     int
	call        provider.Call
	runID       string
	// slot is when the call may be made, callBy when it must have begun.
	slot, callBy time.Time
	// due is when the step was due; it is restored if the call is not made.
	due          time.Time
	maybeGranted bool
	nodeScoped   bool
	retry        api.Retry
	// leaks are the applications of Leaked grants that wait for this revocation, at most maxDueLeaks. The grants are
	// retried after it. A retry of a leak has none: each of many leaks would make all others due.
	leaks []string
}

// brokenStep is a step that cannot be started.
type brokenStep struct {
	application string
	ordinal     int
	err         error
}

func (b brokenStep) Error() string { return b.err.Error() }
func (b brokenStep) Unwrap() error { return b.err }

// startResult is the result of startSteps.
type startResult struct {
	provider api.Provider
	// dueCount is how many steps were due, at most the limit of startSteps.
	dueCount int
	steps    []step
	// wait is the time until the next step can be started.
	wait time.Duration
}

// startSteps starts at most n steps of a provider that are due. While the breaker is
// open, it starts none and ends attempts that are overdue.
func (e *Engine) startSteps(ctx context.Context, provider string, n int) (r startResult, err error) {
	v := e.Store.View(ctx)
	if r.dueCount, err = v.CountDue(provider, e.Clock.Now(), n); err != nil || r.dueCount == 0 {
		return r, err
	}
	r.provider, err = e.provider(v, provider)
	if errors.Is(err, store.ErrNotFound) {
		return startResult{}, nil
	} else if err != nil {
		return r, err
	}
	if r.wait = e.Breaker.OpenFor(provider); r.wait > 0 {
		return r, e.failOverdue(ctx, r.provider)
	}
	// Build the client before a slot is reserved: building takes longer than a slot lasts.
	// The client is cached.
	client := e.client(r.provider)
	r.steps, r.wait, err = e.startInSlots(ctx, r.provider, client, r.dueCount)
	return r, err
}

// startInSlots starts steps of a provider that are due, oldest first: at most n, and only
// as many as have a slot within maxStartAhead. It also writes the decisions of steps that need
// no call. wait is the time until the next step has a slot.
func (e *Engine) startInSlots(ctx context.Context, p api.Provider, client provider.Client, n int) (steps []step, wait time.Duration, err error) {
	var s *starter
	err = e.Store.WriteInBackground(ctx, func(tx store.Tx) error {
		slots, err := e.Limiter.Begin(tx, p.Name, p.RateLimit)
		if err != nil {
			return err
		}
		s = &starter{e: e, tx: tx, provider: p, slots: slots, objects: newObjects(tx.View), now: e.Clock.Now().UTC(),
			compare: func(revoke, other provider.Call) (c comparison) {
				c.removes = provider.RevokesAlso(ctx, p, client, revoke, other)
				c.included = c.removes && provider.Includes(ctx, p, client, other, revoke)
				return c
			}}
		for decided := 0; len(s.steps) < n && decided < maxSteps; {
			free := slots.CountUntil(s.now.Add(maxStartAhead), min(n-len(s.steps), maxSteps-decided))
			if wait = slots.Next().Add(-maxStartAhead).Sub(s.now); free == 0 {
				break
			}
			due, err := tx.DueSteps(p.Name, s.now, free)
			if err != nil {
				return err
			}
			if err := s.start(due); err != nil {
				return err
			}
			if decided += len(due); len(due) < free {
				break
			}
		}
		return slots.Save()
	})
	if err != nil && n > 1 && !store.WouldFailAgain(err) {
		return e.startInSlots(ctx, p, client, 1) // one step may be broken
	} else if err != nil {
		return nil, 0, err
	}
	for _, t := range s.changed {
		e.committed(t)
	}
	return s.steps, max(wait, 0), nil
}
