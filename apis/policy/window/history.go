package window

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// maxBuckets and maxNewest are those of the schema.
	maxBuckets = 512
	maxNewest  = 1024
)

// History is what was let through.
type History struct {
	// Buckets do not overlap but for a second, the oldest first.
	Buckets []v1alpha1.DeletionBucket
	// Newest are the UIDs that were let through in the last bucket.
	Newest []types.UID
	// Committed is the time of the last decision.
	Committed time.Time
}

// HistoryOf reads the history of a status, with which it shares its lists.
func HistoryOf(s *v1alpha1.PodDeletionFlowControlStatus) History {
	h := History{Buckets: s.Buckets, Newest: s.Newest}
	if s.CommittedTime != nil {
		h.Committed = s.CommittedTime.Time
	}
	return h
}

// Store writes the history into a status.
func (h History) Store(s *v1alpha1.PodDeletionFlowControlStatus) {
	s.Buckets, s.Newest = h.Buckets, h.Newest
	s.CommittedTime = nil
	if !h.Committed.IsZero() {
		t := metav1.NewMicroTime(h.Committed)
		s.CommittedTime = &t
	}
}

// Has says whether the UID was let through just now, so that it counts already.
func (t Terms) Has(h History, now time.Time, uid types.UID) bool {
	return t.current(h, now) && slices.Contains(h.Newest, uid)
}

// current says whether what is let through now goes into the last bucket.
func (t Terms) current(h History, now time.Time) bool {
	if len(h.Buckets) == 0 {
		return false
	}
	last := h.Buckets[len(h.Buckets)-1]
	width := t.widthAt(0)
	return width > 0 && last.Start/width == now.Unix()/width && !t.forgiven(last, now)
}

// Add counts n more for a UID that is let through now. One that counts already
// is let through again, and counts from now.
func (t Terms) Add(h History, now time.Time, uid types.UID, n int64) History {
	now = now.Truncate(time.Microsecond)
	next := History{Buckets: slices.Clone(h.Buckets), Committed: now}
	known := t.Has(h, now, uid)
	if t.current(h, now) {
		next.Newest = slices.Clone(h.Newest)
	} else {
		next.Buckets = t.compact(append(next.Buckets, v1alpha1.DeletionBucket{Start: now.Unix(), End: now.Unix() + 1}), now)
	}
	last := &next.Buckets[len(next.Buckets)-1]
	last.End = max(last.End, now.Unix()+1)
	if !known {
		last.Count += n
		next.Newest = append(next.Newest, uid)
		// Who is dropped counts twice if asked again, which is the safe direction.
		next.Newest = next.Newest[max(0, len(next.Newest)-maxNewest):]
	}
	return next
}

// compact merges buckets that need not be told apart any more, and drops those
// that are of no use. The last one stays as it is.
func (t Terms) compact(all []v1alpha1.DeletionBucket, now time.Time) []v1alpha1.DeletionBucket {
	var kept []v1alpha1.DeletionBucket
	for i, b := range all {
		width := t.widthAt(now.Sub(time.Unix(b.End, 0)))
		switch before := len(kept) - 1; {
		case width == 0 && i < len(all)-1:
			// It counts for nothing.
		case before >= 0 && i < len(all)-1 && kept[before].Start/width == b.Start/width && t.alike(kept[before], b):
			kept[before] = merge(kept[before], b)
		default:
			kept = append(kept, b)
		}
	}
	return t.bound(kept)
}

// bound merges the oldest until the schema takes them. Rules that make more
// buckets than these are hard to think of.
func (t Terms) bound(kept []v1alpha1.DeletionBucket) []v1alpha1.DeletionBucket {
	for i := 0; len(kept) > maxBuckets && i < len(kept)-2; {
		if !t.alike(kept[i], kept[i+1]) {
			i++
			continue
		}
		kept[i+1] = merge(kept[i], kept[i+1])
		kept = slices.Delete(kept, i, i+1)
	}
	return kept
}

func merge(a, b v1alpha1.DeletionBucket) v1alpha1.DeletionBucket {
	return v1alpha1.DeletionBucket{Start: min(a.Start, b.Start), End: max(a.End, b.End), Count: a.Count + b.Count}
}

// alike says whether a person closed the breaker before both, or after both.
func (t Terms) alike(a, b v1alpha1.DeletionBucket) bool {
	return t.Closed.IsZero() || (a.Start <= t.Closed.Unix()) == (b.Start <= t.Closed.Unix())
}

// forgiven says whether a person closed the breaker after the bucket. The
// second in which it was closed is over before that counts: no second is both.
func (t Terms) forgiven(b v1alpha1.DeletionBucket, now time.Time) bool {
	return !t.Closed.IsZero() && now.Unix() > t.Closed.Unix() && b.Start <= t.Closed.Unix()
}
