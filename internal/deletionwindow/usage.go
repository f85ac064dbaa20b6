package deletionwindow

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Use is how much of a rule's window is used.
type Usage struct {
	Rule Rule
	// Used is how many deletions the window holds, as they count.
	Used int64
	// Room is how many more fit; 0 when the limit was lowered below Used.
	Remaining int64
}

// Uses returns the use of every rule, the shortest first.
func (t Policy) Usages(h State, now time.Time) []Usage {
	var all []Usage
	for _, r := range t.Rules {
		u := Usage{Rule: r}
		for _, b := range h.Buckets {
			if t.inWindow(r, b, now) {
				u.Used += b.Count
			}
		}
		u.Remaining = max(0, r.Limit-u.Used)
		all = append(all, u)
	}
	return all
}

// counts says whether a bucket counts for a window that ends now.
func (t Policy) inWindow(r Rule, b v1alpha1.DeletionBucket, now time.Time) bool {
	return !t.closedAfter(b, now) && time.Unix(b.End, 0).After(now.Add(-t.effectiveInterval(r)))
}

// Full returns the rule that has no room for n more, of several the one that
// has room the latest. At is when it has; zero: never, because the limit is
// lower than n.
func (t Policy) Exceeded(h State, now time.Time, n int64) (full Usage, at time.Time, ok bool) {
	for _, u := range t.Usages(h, now) {
		if n <= u.Remaining {
			continue
		}
		when := t.roomTime(h, u.Rule, now, n)
		if !ok || !at.IsZero() && (when.IsZero() || when.After(at)) {
			full, at, ok = u, when, true
		}
	}
	return full, at, ok
}

// roomAt is when the rule has room for n more, if nothing is let through until then.
func (t Policy) roomTime(h State, r Rule, now time.Time, n int64) time.Time {
	if n > r.Limit {
		return time.Time{}
	}
	counting := slices.DeleteFunc(slices.Clone(h.Buckets), func(b v1alpha1.DeletionBucket) bool { return !t.inWindow(r, b, now) })
	// Buckets are in the order of their starts; by their ends they leave.
	slices.SortFunc(counting, func(a, b v1alpha1.DeletionBucket) int { return int(a.End - b.End) })
	left := totalCount(counting)
	for _, b := range counting {
		left -= b.Count
		if left <= r.Limit-n {
			return time.Unix(b.End, 0).Add(t.effectiveInterval(r))
		}
	}
	return now
}
