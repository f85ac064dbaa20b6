package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// claimed is a step whose intent is stored.
type claimed struct {
	call   provider.Call
	id     string
	callBy time.Time
	// due is when the step was due; it is restored if the call is not made.
	due          time.Time
	maybeGranted bool
	retry        api.Retry
}

// claim stores the intent to call the provider, or the decision if no call is
// needed. It returns true if the caller must call the provider.
func (e *Engine) claim(ctx context.Context, job queue.Job, p api.Provider) (claimed, bool, error) {
	var c claimed
	ready := false
	_, _, err := e.update(ctx, job.Application, "", func(t *txn) error {
		g, err := current(t.grants, job)
		if err != nil {
			return err
		}
		if g.ClaimID != "" {
			return errStaleStep
		}
		others, err := t.Overlap(g, t.app.Request.PodUID, grantIPs(t.app.Request, p))
		if err != nil {
			return err
		}
		before, d := g, Decide(input(t.app, g, p, others))
		if d.State != "" && d.State != g.State {
			g.State, g.Since = d.State, t.now
		}
		if d.Reason != "" {
			g.Reason, g.Message = d.Reason, d.Message
		}
		g.Due, g.NextTry = time.Time{}, time.Time{}
		switch {
		case d.Wait:
			wait := recheckInterval
			if d.State == api.Leaked {
				g.Failures++
				wait = Backoff(p.Retry, g.Failures, e.Random())
			}
			g.Due = t.now.Add(wait)
			g.NextTry = g.Due
			if err := t.enqueue(&g); err != nil {
				return err
			}
		case d.Call != "":
			if g.CallKey == "" {
				g.CallKey = fmt.Sprintf("%s-%d-%d", g.Application, g.Ordinal, g.KeysUsed)
			}
			callBy := t.now.Add(claimAhead + maxCallDelay)
			c = claimed{id: newClaimID(), maybeGranted: g.MaybeGranted, retry: p.Retry, callBy: callBy, due: before.Due,
				call: provider.Call{Op: d.Call, Key: g.CallKey, Application: g.Application, Pod: t.app.Request,
					IPs: grantIPs(t.app.Request, p), Parameters: g.Parameters, Kept: g.Kept}}
			if d.Call == provider.Revoke {
				c.call.Key += "-revoke"
			}
			g.MaybeGranted, g.ClaimID, g.ClaimedUntil, ready = true, c.id, callBy.Add(provider.Timeout(p)+finishMargin), true
		}
		return t.writeGrant(before, g)
	})
	return c, ready && err == nil, err
}

func input(app store.Application, g store.Grant, p api.Provider, o store.Overlap) Input {
	return Input{State: g.State, RevokeRequested: app.RevokeRequested, MaybeGranted: g.MaybeGranted, Pending: g.Pending, CanRevoke: p.CanRevoke,
		NodeScoped: p.NodeScoped, OtherRevoking: o.Revoking, OtherHolds: o.Held, OtherSetHolds: o.HeldByPod, OtherSetCalls: o.CalledByPod}
}

// current returns the grant of a job if the job is for its current step.
func current(grants []store.Grant, job queue.Job) (store.Grant, error) {
	if job.Ordinal >= len(grants) || grants[job.Ordinal].Step != job.Step {
		return store.Grant{}, errStaleStep
	}
	return grants[job.Ordinal], nil
}
