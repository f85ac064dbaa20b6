package deletionwindow

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// CountTime returns the time at which an allowed deletion is counted: local time,
// but not before the last committed time.
//
// The limits are checked with the local time. If the committed time is later than the
// local time, a check with it would drop deletions that still count.
func CountTime(s State, local time.Time) time.Time {
	if s.CommittedTime.After(local) {
		return s.CommittedTime
	}
	return local.Truncate(time.Microsecond)
}

// CommittedAhead reports whether the committed time is so far ahead that a clock must
// have been wrong.
func (p Policy) CommittedAhead(s State, local time.Time) bool {
	return s.CommittedTime.After(local.Add(2 * p.Skew))
}

// CorrectCommitted sets a committed time that is too far ahead to the leader's time, so that
// deletions do not count for too long. All cells stay; future ones end now. The leader's clock
// has to be right: one that is behind would move deletions out of their windows.
// Earlier is cleared, because its cell is not known anymore.
func (p Policy) CorrectCommitted(s State, local time.Time) (State, bool) {
	if !p.CommittedAhead(s, local) {
		return s, false
	}
	local = local.Truncate(time.Microsecond)
	next := State{Newest: s.Newest, CommittedTime: local}
	for _, c := range slices.Clone(s.Cells) {
		c.End = min(c.End, local.Unix()+1)
		c.Start = min(c.Start, local.Unix())
		last := len(next.Cells) - 1
		if last >= 0 && next.Cells[last].Start == c.Start && p.sameSideOfClose(next.Cells[last], c) {
			next.Cells[last] = merge(next.Cells[last], c)
			continue
		}
		next.Cells = append(next.Cells, c)
	}
	return next, true
}

// totalCount returns the number of deletions in all cells.
func totalCount(all []v1alpha1.DeletionCell) (n int64) {
	for _, c := range all {
		n += c.Count
	}
	return n
}
