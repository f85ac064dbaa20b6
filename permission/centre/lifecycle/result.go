package lifecycle

import (
	"maps"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// CallResult is the input of ApplyResult: a call and its result.
type CallResult struct {
	Now time.Time
	Op  provider.Op
	// MaybeGranted: the grant may have existed before the call.
	MaybeGranted bool
	// NodeScoped is the field of the provider.
	NodeScoped bool
	Result     provider.Result
	Retry      api.Retry
	// Random is from 0 to 1.
	Random float64
}

// ApplyResult returns the grant after a call. Due is when the next call is due;
// zero if there is none.
func ApplyResult(g store.Grant, o CallResult) store.Grant {
	g.NextTry, g.Due = time.Time{}, time.Time{}
	if g.Calls++; g.Calls == 1 {
		// The provider is not responsible for the time in the queue.
		g.Began = o.Now
	}
	if o.Op == provider.Revoke {
		return applyRevokeResult(g, o)
	}
	if !o.Result.Sent {
		g.MaybeGranted = o.MaybeGranted
	}
	switch o.Result.Outcome {
	case provider.Done:
		g.Kept = mergeKept(g.Kept, o.Result.Kept)
		return setState(g, o, api.Granted)
	case provider.Pending:
		if o.Now.Sub(g.Began) > seconds(o.Retry.PollTimeoutSeconds) {
			o.Result.Reason, o.Result.Message = ReasonDecisionTimeout, "the provider accepted the request but did not decide within retry.pollTimeoutSeconds"
			g.Pending = false
			return setState(g, o, api.Failed)
		}
		g.Pending, g.Failures, g.Kept = true, 0, mergeKept(g.Kept, o.Result.Kept)
		return scheduleAt(setState(g, o, api.Applying), o.Now.Add(seconds(o.Retry.PollSeconds)))
	case provider.Denied:
		// Denied is final for this request; a new attempt is a new request. MaybeGranted is true
		// after a denial in these cases: (1) a part was granted; (2) the call was a grant, and an
		// earlier one may have granted it; (3) the poll was not sent, and the provider has accepted
		// the grant; (4) the provider is node-scoped: an earlier pod of the node may have left its
		// grant to this application, because its revocation ended without a call.
		provesNothing := o.Op == provider.Grant || !o.Result.Sent || o.NodeScoped
		g.MaybeGranted, g.Pending, g.CallKey = o.Result.Partial || o.MaybeGranted && provesNothing, false, ""
		g.KeysUsed++
		return setState(g, o, api.Denied)
	default:
		g.Failures++
		if g.Failures >= o.Retry.MaxCalls {
			return setState(g, o, api.Failed)
		}
		return scheduleAt(setState(g, o, api.Applying), o.Now.Add(retryDelay(o, g.Failures)))
	}
}

// applyRevokeResult returns the grant after a revoke call. A grant that cannot
// be revoked becomes Leaked and is retried.
func applyRevokeResult(g store.Grant, o CallResult) store.Grant {
	switch o.Result.Outcome {
	case provider.Done:
		g.MaybeGranted, g.Pending = false, false
		return setState(g, o, api.Revoked)
	case provider.Pending:
		if !g.Pending {
			// The calls before failed, so the provider is responsible only from now on.
			g.Pending, g.Began = true, o.Now
		}
		state := g.State
		if o.Now.Sub(g.Began) > seconds(o.Retry.PollTimeoutSeconds) {
			// The revocation is still repeated, but a person can acknowledge the leak.
			state = api.Leaked
			o.Result.Reason, o.Result.Message = ReasonDecisionTimeout, "the provider accepted the revocation but did not revoke within retry.pollTimeoutSeconds"
		}
		return scheduleAt(setState(g, o, state), o.Now.Add(seconds(o.Retry.PollSeconds)))
	default:
		if o.Result.Outcome == provider.Denied && o.Result.Sent {
			g.Pending = false // the provider does not revoke it later
		}
		g.Failures++
		state := g.State
		if g.Failures >= o.Retry.MaxCalls {
			state = api.Leaked
		}
		return scheduleAt(setState(g, o, state), o.Now.Add(retryDelay(o, g.Failures)))
	}
}

func setState(g store.Grant, o CallResult, state api.State) store.Grant {
	if g.State != state {
		g.Since = o.Now
	}
	g.State, g.Reason, g.Message = state, o.Result.Reason, o.Result.Message
	return g
}

func scheduleAt(g store.Grant, at time.Time) store.Grant {
	g.NextTry, g.Due = at, at
	return g
}

// retryDelay is the backoff, or Retry-After if it is longer.
func retryDelay(o CallResult, failures int) time.Duration {
	return max(Backoff(o.Retry, failures, o.Random), o.Result.RetryAfter)
}

func mergeKept(a, b map[string]any) map[string]any {
	if len(b) == 0 {
		return a
	}
	merged := maps.Clone(a)
	if merged == nil {
		merged = map[string]any{}
	}
	maps.Copy(merged, b)
	return merged
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
