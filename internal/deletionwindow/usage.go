package deletionwindow

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Usage is how much of a rule's limit is used.
type Usage struct {
	Rule Rule
	// Used is the number of deletions that count in the window.
	Used int64
	// Remaining is how many more are within the limit; 0 if Used is above it.
	Remaining int64
}

// Usages returns the usage of every rule, shortest first.
func (p Policy) Usages(s State, now time.Time) []Usage {
	var all []Usage
	for _, r := range p.Rules {
		u := Usage{Rule: r}
		for _, c := range s.Cells {
			if p.inWindow(r, c, now) {
				u.Used += c.Count
			}
		}
		u.Remaining = max(0, r.Limit-u.Used)
		all = append(all, u)
	}
	return all
}

// inWindow reports whether a cell counts in the window that ends now.
func (p Policy) inWindow(r Rule, c v1alpha1.DeletionCell, now time.Time) bool {
	return !p.closedAfter(c, now) && time.Unix(c.End, 0).After(now.Add(-p.effectiveInterval(r)))
}

// Exceeded decides whether n more deletions exceed a rule. Of several rules it returns the usage
// of the one that allows n more deletions last. roomTime is the time when it does; zero means
// never, because n is above the limit.
func (p Policy) Exceeded(s State, now time.Time, n int64) (usage Usage, roomTime time.Time, exceeded bool) {
	for _, u := range p.Usages(s, now) {
		if n <= u.Remaining {
			continue
		}
		at := p.roomTime(s, u.Rule, now, n)
		if !exceeded || !roomTime.IsZero() && (at.IsZero() || at.After(roomTime)) {
			usage, roomTime, exceeded = u, at, true
		}
	}
	return usage, roomTime, exceeded
}

// roomTime is when the rule allows n more deletions, if none is counted until then.
func (p Policy) roomTime(s State, r Rule, now time.Time, n int64) time.Time {
	if n > r.Limit {
		return time.Time{}
	}
	counting := slices.DeleteFunc(slices.Clone(s.Cells), func(c v1alpha1.DeletionCell) bool { return !p.inWindow(r, c, now) })
	// Cells are sorted by start, but leave the window by end.
	slices.SortFunc(counting, func(a, b v1alpha1.DeletionCell) int { return int(a.End - b.End) })
	left := totalCount(counting)
	for _, c := range counting {
		left -= c.Count
		if left <= r.Limit-n {
			return time.Unix(c.End, 0).Add(p.effectiveInterval(r))
		}
	}
	return now
}
