package deletionwindow

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// maxCells, maxNewest and maxEarlier equal maxItems of the schema.
	maxCells   = 512
	maxNewest  = 1024
	maxEarlier = 256
	// retrySeconds is how long after the end of a cell a request may be repeated:
	// the API server calls webhooks when it marks a pod as terminating, when it
	// removes it, and after a conflict.
	retrySeconds = 10
)

// State is the record of the deletions that were allowed.
type State struct {
	// Cells are sorted, oldest first, and overlap by at most a second.
	Cells []v1alpha1.DeletionCell
	// Newest are the UIDs of the deletions in the last cell, Earlier the last UIDs in
	// the cell before it.
	Newest, Earlier []types.UID
	// CommittedTime is the time of the last committed decision.
	CommittedTime time.Time
}

// StateOf returns the state in a status, with which it shares its slices.
func StateOf(status *v1alpha1.PodDeletionFlowControlStatus) State {
	s := State{Cells: status.Buckets, Newest: status.Newest, Earlier: status.Earlier}
	if status.CommittedTime != nil {
		s.CommittedTime = status.CommittedTime.Time
	}
	return s
}

// Store writes the state into a status.
func (s State) Store(status *v1alpha1.PodDeletionFlowControlStatus) {
	status.Buckets, status.Newest, status.Earlier = s.Cells, s.Newest, s.Earlier
	status.CommittedTime = nil
	if !s.CommittedTime.IsZero() {
		status.CommittedTime = new(metav1.NewMicroTime(s.CommittedTime))
	}
}

// Deletion is the deletion of a pod, or of a namespace with all its pods.
type Deletion struct {
	// UID is that of the pod, or of the namespace with a slash and the number of pods.
	UID types.UID
	// Count is the number of pods.
	Count int64
	// IsNamespace reports whether it deletes a namespace. A repeated request counts
	// once only within its cell, because the namespace may have grown.
	IsNamespace bool
}

// IsCounted decides whether a deletion is counted already, as a repeated request.
func (p Policy) IsCounted(s State, now time.Time, d Deletion) bool {
	_, ok := p.cellOf(s, now, d)
	return ok
}

// cellOf returns the index of the cell in which a recent deletion is counted.
func (p Policy) cellOf(s State, now time.Time, d Deletion) (i int, ok bool) {
	last := len(s.Cells) - 1
	switch {
	case slices.Contains(s.Newest, d.UID):
		return last, p.isCurrent(s, now) || (!d.IsNamespace && p.endedRecently(s, last, now))
	case slices.Contains(s.Earlier, d.UID):
		return last - 1, !d.IsNamespace && p.endedRecently(s, last-1, now)
	}
	return 0, false
}

// endedRecently reports whether requests counted in a cell may still be repeated.
func (p Policy) endedRecently(s State, i int, now time.Time) bool {
	return i >= 0 && now.Unix() < s.Cells[i].End+retrySeconds && !p.closedAfter(s.Cells[i], now)
}

// isCurrent reports whether a deletion at this time belongs to the last cell.
func (p Policy) isCurrent(s State, now time.Time) bool {
	if len(s.Cells) == 0 {
		return false
	}
	last := s.Cells[len(s.Cells)-1]
	width := p.cellSecondsAt(0)
	return width > 0 && last.Start/width == now.Unix()/width && !p.closedAfter(last, now)
}

// Add counts a deletion at this time. A deletion that is counted already moves to
// the last cell.
func (p Policy) Add(s State, now time.Time, d Deletion) State {
	now = now.Truncate(time.Microsecond)
	next := State{Cells: slices.Clone(s.Cells), Newest: s.Newest, Earlier: s.Earlier, CommittedTime: now}
	if i, known := p.cellOf(s, now, d); known {
		next.Cells[i].Count -= min(d.Count, next.Cells[i].Count)
		next.Newest, next.Earlier = without(s.Newest, d.UID), without(s.Earlier, d.UID)
	}
	if !p.isCurrent(s, now) {
		next.Cells = p.compact(append(next.Cells, v1alpha1.DeletionCell{Start: now.Unix(), End: now.Unix() + 1}), now)
		next.Newest, next.Earlier = nil, lastUIDs(next.Newest, maxEarlier)
	}
	if !p.endedRecently(next, len(next.Cells)-2, now) {
		next.Earlier = nil
	}
	last := &next.Cells[len(next.Cells)-1]
	last.End = max(last.End, now.Unix()+1)
	last.Count += d.Count
	next.Newest = lastUIDs(append(slices.Clone(next.Newest), d.UID), maxNewest)
	return next
}

// without returns the UIDs except for one.
func without(all []types.UID, uid types.UID) []types.UID {
	return slices.DeleteFunc(slices.Clone(all), func(u types.UID) bool { return u == uid })
}

// lastUIDs returns the last UIDs. A repeated request of a dropped UID counts twice,
// which errs on the safe side.
func lastUIDs(all []types.UID, most int) []types.UID { return all[max(0, len(all)-most):] }

// compact merges cells to the length that their age allows and drops those that
// are not needed. The last cell stays as it is.
func (p Policy) compact(all []v1alpha1.DeletionCell, now time.Time) []v1alpha1.DeletionCell {
	var kept []v1alpha1.DeletionCell
	for i, c := range all {
		width := p.cellSecondsAt(now.Sub(time.Unix(c.End, 0)))
		switch before := len(kept) - 1; {
		case width == 0 && i < len(all)-1:
			// not needed anymore
		case before >= 0 && i < len(all)-1 && kept[before].Start/width == c.Start/width && p.sameSideOfClose(kept[before], c):
			kept[before] = merge(kept[before], c)
		default:
			kept = append(kept, c)
		}
	}
	return p.bound(kept)
}

// bound merges the oldest cells until the schema accepts them. No realistic
// rules need this.
func (p Policy) bound(kept []v1alpha1.DeletionCell) []v1alpha1.DeletionCell {
	for i := 0; len(kept) > maxCells && i < len(kept)-2; {
		if !p.sameSideOfClose(kept[i], kept[i+1]) {
			i++
			continue
		}
		kept[i+1] = merge(kept[i], kept[i+1])
		kept = slices.Delete(kept, i, i+1)
	}
	return kept
}

func merge(a, b v1alpha1.DeletionCell) v1alpha1.DeletionCell {
	return v1alpha1.DeletionCell{Start: min(a.Start, b.Start), End: max(a.End, b.End), Count: a.Count + b.Count}
}

// sameSideOfClose reports whether both cells are before, or both after, the time at
// which a person closed the breaker.
func (p Policy) sameSideOfClose(a, b v1alpha1.DeletionCell) bool {
	return p.ClosedTime.IsZero() || (a.Start <= p.ClosedTime.Unix()) == (b.Start <= p.ClosedTime.Unix())
}

// closedAfter reports whether a person closed the breaker after the cell. It counts
// from the second after the closing, so that no second is on both sides.
func (p Policy) closedAfter(c v1alpha1.DeletionCell, now time.Time) bool {
	return !p.ClosedTime.IsZero() && now.Unix() > p.ClosedTime.Unix() && c.Start <= p.ClosedTime.Unix()
}
