package deletionflow

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// Decision is the decision on a Request.
type Decision struct {
	// Allowed reports whether this flow control allows the request.
	Allowed bool
	// CountsAs is how many deletions it counts as.
	CountsAs int64
	// OverLimit reports whether it exceeds a limit. Exceeded is the rule, RoomTime the
	// time when the request is within it; zero if CountsAs is above the limit.
	OverLimit bool
	Exceeded  deletionwindow.Usage
	RoomTime  time.Time
	// Shadow reports whether it is allowed because of shadow mode only.
	Shadow bool
	// Err says which rule is invalid; then the request is denied.
	Err error
}

// Decide decides which requests are within all limits, in their order. Local is
// the time of the replica's clock. Next is the status after them; nil if it does
// not change.
func Decide(f *v1alpha1.PodDeletionFlowControl, group []Request, local time.Time, skew time.Duration) (decisions []Decision, next *v1alpha1.PodDeletionFlowControlStatus) {
	policy, err := deletionwindow.ParsePolicy(f, skew)
	d := &decider{spec: &f.Spec, policy: policy, err: err, local: local, state: deletionwindow.StateOf(&f.Status), shares: f.Status.Shares}
	for _, r := range group {
		decisions = append(decisions, d.decide(r))
	}
	if d.changed {
		next = f.Status.DeepCopy()
		d.state.Store(next)
		next.Shares = d.shares
	}
	return decisions, next
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

func (d *decider) decide(r Request) Decision {
	n, _ := Count(d.spec, r)
	decision := Decision{Allowed: true, CountsAs: n}
	switch {
	case n == 0:
		return decision
	case d.err != nil:
		return Decision{CountsAs: n, Err: d.err, Allowed: d.spec.Shadow, Shadow: d.spec.Shadow}
	}
	now := deletionwindow.CountTime(d.state, d.local)
	deletion := deletionwindow.Deletion{UID: r.UID, Count: n, IsNamespace: r.OfNamespace}
	if r.OfNamespace {
		deletion.UID = d.namespaceUID(r.UID, n, now)
	}
	repeated := d.policy.IsCounted(d.state, now, deletion)
	if !repeated {
		decision.Exceeded, decision.RoomTime, decision.OverLimit = d.policy.Exceeded(d.state, d.local, n)
	}
	if decision.OverLimit {
		decision.Allowed, decision.Shadow = d.spec.Shadow, d.spec.Shadow
	}
	if decision.Allowed && !r.DryRun {
		d.record(r, deletion, now, repeated)
	}
	return decision
}

// namespaceUID returns the UID with which the deletion of a namespace with n pods is counted. It has the
// number of pods, so that a namespace that has grown is counted again. If it is counted with more
// pods already, it is that UID.
func (d *decider) namespaceUID(uid types.UID, n int64, now time.Time) types.UID {
	for _, counted := range d.state.Newest {
		pods, ok := strings.CutPrefix(string(counted), string(uid)+"/")
		m, err := strconv.ParseInt(pods, 10, 64)
		if ok && err == nil && m >= n && d.policy.IsCounted(d.state, now, deletionwindow.Deletion{UID: counted, IsNamespace: true}) {
			return counted
		}
	}
	return types.UID(fmt.Sprintf("%s/%d", uid, n))
}

// record counts an allowed deletion. Shadow mode counts all of them: what would
// have been deleted without any denial.
func (d *decider) record(r Request, deletion deletionwindow.Deletion, now time.Time, repeated bool) {
	next := d.policy.Add(d.state, now, deletion)
	if repeated && lastCell(next) == lastCell(d.state) {
		return // allowed before in the same second
	}
	d.state, d.changed = next, true
	if !repeated {
		d.shares = addDeletion(d.shares, allowedDeletion{
			User: r.User, Owner: r.Owner, Namespace: r.Namespace.Name, Count: deletion.Count, Eviction: r.Eviction,
		}, now, shortestRule(d.policy).Interval)
	}
}

func lastCell(h deletionwindow.State) v1alpha1.DeletionCell { return h.Cells[len(h.Cells)-1] }
