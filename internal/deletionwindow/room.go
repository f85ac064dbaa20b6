package deletionwindow

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Use is how much of a rule's window is used.
type Use struct {
	Rule Rule
	// Used is how many deletions the window holds, as they count.
	Used int64
	// Room is how many more fit; 0 when the limit was lowered below Used.
	Room int64
}

// Uses returns the use of every rule, the shortest first.
func (t Terms) Uses(h History, now time.Time) []Use {
	var all []Use
	for _, r := range t.Rules {
		u := Use{Rule: r}
		for _, b := range h.Buckets {
			if t.counts(r, b, now) {
				u.Used += b.Count
			}
		}
		u.Room = max(0, r.Limit-u.Used)
		all = append(all, u)
	}
	return all
}

// counts says whether a bucket counts for a window that ends now.
func (t Terms) counts(r Rule, b v1alpha1.DeletionBucket, now time.Time) bool {
	return !t.forgiven(b, now) && time.Unix(b.End, 0).After(now.Add(-t.effective(r)))
}

// Full returns the rule that has no room for n more, of several the one that
// has room the latest. At is when it has; zero: never, because the limit is
// lower than n.
func (t Terms) Full(h History, now time.Time, n int64) (full Use, at time.Time, ok bool) {
	for _, u := range t.Uses(h, now) {
		if n <= u.Room {
			continue
		}
		when := t.roomAt(h, u.Rule, now, n)
		if !ok || !at.IsZero() && (when.IsZero() || when.After(at)) {
			full, at, ok = u, when, true
		}
	}
	return full, at, ok
}

// roomAt is when the rule has room for n more, if nothing is let through until then.
func (t Terms) roomAt(h History, r Rule, now time.Time, n int64) time.Time {
	if n > r.Limit {
		return time.Time{}
	}
	counting := slices.DeleteFunc(slices.Clone(h.Buckets), func(b v1alpha1.DeletionBucket) bool { return !t.counts(r, b, now) })
	// Buckets are in the order of their starts; by their ends they leave.
	slices.SortFunc(counting, func(a, b v1alpha1.DeletionBucket) int { return int(a.End - b.End) })
	left := total(counting)
	for _, b := range counting {
		left -= b.Count
		if left <= r.Limit-n {
			return time.Unix(b.End, 0).Add(t.effective(r))
		}
	}
	return now
}
