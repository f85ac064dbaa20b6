package deletionflow

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletioncallers"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// Verdict is the answer to a request.
type Verdict struct {
	// Allowed: the request may go on, as far as this flow control is concerned.
	Allowed bool
	// Counted is how many deletions it counts as; Exempt why it counts as none.
	Counted int64
	Exempt  string
	// Full is the rule that has no room, if Refuses; Room is when it has, zero
	// where it never has because Counted is more than its limit.
	OverLimit bool
	Exceeded  deletionwindow.Usage
	RoomTime  time.Time
	// Shadow: it would have been refused.
	Shadow bool
	// Err says what of the flow control does not read: nothing is let through.
	Err error
}

// Decide decides about requests in their order, at the time of the clock. Next
// is the status after them; nil if it stays as it is.
func Decide(f *v1alpha1.PodDeletionFlowControl, group []Request, local time.Time, skew time.Duration) (verdicts []Verdict, next *v1alpha1.PodDeletionFlowControlStatus) {
	terms, err := deletionwindow.ParsePolicy(f, skew)
	d := &decider{spec: &f.Spec, policy: terms, err: err, local: local, state: deletionwindow.StateOf(&f.Status), shares: f.Status.Shares}
	for _, r := range group {
		verdicts = append(verdicts, d.decide(r))
	}
	if d.changed {
		next = f.Status.DeepCopy()
		d.state.Store(next)
		next.Shares = d.shares
	}
	return verdicts, next
}

type decider struct {
	spec    *v1alpha1.PodDeletionFlowControlSpec
	policy  deletionwindow.Policy
	err     error
	local   time.Time
	state   deletionwindow.State
	shares  *v1alpha1.DeletionShares
	changed bool
}

func (d *decider) decide(r Request) Verdict {
	n, exempt := Count(d.spec, r)
	v := Verdict{Allowed: true, Counted: n, Exempt: exempt}
	switch {
	case n == 0:
		return v
	case d.err != nil:
		return Verdict{Counted: n, Err: d.err, Allowed: d.spec.Shadow, Shadow: d.spec.Shadow}
	}
	now := deletionwindow.CountTime(d.state, d.local)
	deletion := deletionwindow.Deletion{UID: r.UID, Count: n, IsNamespace: r.OfNamespace}
	again := d.policy.IsCounted(d.state, now, deletion)
	if !again {
		v.Exceeded, v.RoomTime, v.OverLimit = d.policy.Exceeded(d.state, d.local, n)
	}
	if v.OverLimit {
		v.Allowed, v.Shadow = d.spec.Shadow, d.spec.Shadow
	}
	if v.Allowed && !r.DryRun {
		d.record(r, deletion, now, again)
	}
	return v
}

// let counts what is let through. In shadow mode that is everything: it is
// what would have been counted if nothing had been refused.
func (d *decider) record(r Request, deletion deletionwindow.Deletion, now time.Time, again bool) {
	next := d.policy.Add(d.state, now, deletion)
	if again && lastBucket(next) == lastBucket(d.state) {
		return // it was let through in this very second
	}
	d.state, d.changed = next, true
	if !again {
		d.shares = deletioncallers.Add(d.shares, deletioncallers.Deletion{
			User: r.User, Owner: r.Owner, Namespace: r.Namespace.Name, Count: deletion.Count, Eviction: r.Eviction,
		}, now, shortestRule(d.policy).Interval)
	}
}

func lastBucket(h deletionwindow.State) v1alpha1.DeletionBucket { return h.Buckets[len(h.Buckets)-1] }
