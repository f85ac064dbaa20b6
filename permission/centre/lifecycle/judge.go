package lifecycle

import (
	"maps"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Outcome is a call that was made.
type Outcome struct {
	Now time.Time
	Op  provider.Op
	// Before: the grant was touched before this call was.
	Before bool
	Result provider.Result
	Retry  api.Retry
	// Random is from 0 to 1.
	Random float64
}

// Judge returns what a grant becomes by a call, and when the next is due;
// never when it is zero.
func Judge(g store.Grant, o Outcome) store.Grant {
	g.NextTry, g.Due = time.Time{}, time.Time{}
	g.Calls++
	if o.Op == provider.Revoke {
		return judgeRevoke(g, o)
	}
	if !o.Result.Sent {
		g.Touched = o.Before
	}
	switch o.Result.Outcome {
	case provider.Done:
		g.Kept = merge(g.Kept, o.Result.Kept)
		return become(g, o, api.Granted)
	case provider.Pending:
		if o.Now.Sub(g.Began) > seconds(o.Retry.PollTimeoutSeconds) {
			o.Result.Reason, o.Result.Message = ReasonGaveUp, "the provider took the request and did not decide in time"
			g.Pending = false
			return become(g, o, api.Failed)
		}
		g.Pending, g.Failures, g.Kept = true, 0, merge(g.Kept, o.Result.Kept)
		return again(become(g, o, api.Applying), o.Now.Add(seconds(o.Retry.PollSeconds)))
	case provider.Denied:
		// What it says about this request is its last word: another attempt
		// is another request.
		g.Touched, g.Pending, g.CallKey = o.Result.Partial || o.Before && o.Op == provider.Grant, false, ""
		g.Keys++
		return become(g, o, api.Denied)
	default:
		g.Failures++
		if g.Failures >= o.Retry.MaxCalls {
			return become(g, o, api.Failed)
		}
		return again(become(g, o, api.Applying), o.Now.Add(wait(o, g.Failures)))
	}
}

// judgeRevoke: what cannot be taken back is Leaked, and is tried on.
func judgeRevoke(g store.Grant, o Outcome) store.Grant {
	switch o.Result.Outcome {
	case provider.Done:
		g.Touched, g.Pending = false, false
		return become(g, o, api.Revoked)
	case provider.Pending:
		return again(become(g, o, g.State), o.Now.Add(seconds(o.Retry.PollSeconds)))
	default:
		g.Failures++
		state := g.State
		if g.Failures >= o.Retry.MaxCalls {
			state = api.Leaked
		}
		return again(become(g, o, state), o.Now.Add(wait(o, g.Failures)))
	}
}

func become(g store.Grant, o Outcome, state api.State) store.Grant {
	if g.State != state {
		g.Since = o.Now
	}
	g.State, g.Reason, g.Message = state, o.Result.Reason, o.Result.Message
	return g
}

func again(g store.Grant, at time.Time) store.Grant {
	g.NextTry, g.Due = at, at
	return g
}

// wait is the backoff, or what the provider asks for when that is longer.
func wait(o Outcome, failures int) time.Duration {
	return max(Backoff(o.Retry, failures, o.Random), o.Result.RetryAfter)
}

func merge(a, b map[string]any) map[string]any {
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
