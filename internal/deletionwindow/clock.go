package deletionwindow

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Now returns the time at which something is counted that is let through: the
// clock's, but not before the last one that was committed.
//
// Whether there is room is looked at from the clock's own time. From a
// committed time that is ahead, windows that are still full would look empty.
func CountTime(h State, local time.Time) time.Time {
	if h.Committed.After(local) {
		return h.Committed
	}
	return local.Truncate(time.Microsecond)
}

// Ahead says whether the committed time is so far ahead that a clock was wrong.
func (t Policy) CommittedAhead(h State, local time.Time) bool {
	return h.Committed.After(local.Add(2 * t.Skew))
}

// Reset sets a committed time that is too far ahead to the leader's, so that
// what is counted does not count for longer than it has to. All buckets stay;
// those of the future are of now. Which of them Earlier is of is not known any more.
func (t Policy) Reset(h State, local time.Time) (State, bool) {
	if !t.CommittedAhead(h, local) {
		return h, false
	}
	local = local.Truncate(time.Microsecond)
	next := State{Newest: h.Newest, Committed: local}
	for _, b := range slices.Clone(h.Buckets) {
		b.End = min(b.End, local.Unix()+1)
		b.Start = min(b.Start, local.Unix())
		last := len(next.Buckets) - 1
		if last >= 0 && next.Buckets[last].Start == b.Start && t.sameSideOfClose(next.Buckets[last], b) {
			next.Buckets[last] = merge(next.Buckets[last], b)
			continue
		}
		next.Buckets = append(next.Buckets, b)
	}
	return next, true
}

// total is how many deletions all buckets hold.
func totalCount(all []v1alpha1.DeletionBucket) (n int64) {
	for _, b := range all {
		n += b.Count
	}
	return n
}
