package deletionwindow

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// maxBuckets, maxNewest and maxEarlier are those of the schema.
	maxBuckets = 512
	maxNewest  = 1024
	maxEarlier = 256
	// repeats is for how many seconds after the end of a bucket what was let
	// through in it may be asked about again: the API server asks when it marks
	// a pod and when it removes it, and again after a conflict.
	retrySeconds = 10
)

// History is what was let through.
type State struct {
	// Buckets do not overlap but for a second, the oldest first.
	Buckets []v1alpha1.DeletionBucket
	// Newest are the UIDs that were let through in the last bucket, Earlier the
	// last of those in the bucket before it.
	Newest, Earlier []types.UID
	// Committed is the time of the last decision.
	Committed time.Time
}

// HistoryOf reads the history of a status, with which it shares its lists.
func StateOf(s *v1alpha1.PodDeletionFlowControlStatus) State {
	h := State{Buckets: s.Buckets, Newest: s.Newest, Earlier: s.Earlier}
	if s.CommittedTime != nil {
		h.Committed = s.CommittedTime.Time
	}
	return h
}

// Store writes the history into a status.
func (h State) Store(s *v1alpha1.PodDeletionFlowControlStatus) {
	s.Buckets, s.Newest, s.Earlier = h.Buckets, h.Newest, h.Earlier
	s.CommittedTime = nil
	if !h.Committed.IsZero() {
		t := metav1.NewMicroTime(h.Committed)
		s.CommittedTime = &t
	}
}

// Deletion is what is let through: a pod, or a namespace with all in it.
type Deletion struct {
	UID types.UID
	// Count is how many pods it counts as.
	Count int64
	// Namespace: it is a namespace's, which may have grown when it is asked about
	// again. It is known for as long as its bucket lasts only.
	IsNamespace bool
}

// Has says whether a deletion was let through just now, so that it counts already.
func (t Policy) IsCounted(h State, now time.Time, d Deletion) bool {
	_, ok := t.bucketOf(h, now, d)
	return ok
}

// bucketOf returns the bucket in which a deletion counts that was let through just
// now.
func (t Policy) bucketOf(h State, now time.Time, d Deletion) (i int, ok bool) {
	last := len(h.Buckets) - 1
	switch {
	case slices.Contains(h.Newest, d.UID):
		return last, t.isCurrent(h, now) || (!d.IsNamespace && t.endedRecently(h, last, now))
	case slices.Contains(h.Earlier, d.UID):
		return last - 1, !d.IsNamespace && t.endedRecently(h, last-1, now)
	}
	return 0, false
}

// lately says whether a bucket ended so short a time ago that what was let
// through in it may be asked about again.
func (t Policy) endedRecently(h State, i int, now time.Time) bool {
	return i >= 0 && now.Unix() < h.Buckets[i].End+retrySeconds && !t.closedAfter(h.Buckets[i], now)
}

// current says whether what is let through now goes into the last bucket.
func (t Policy) isCurrent(h State, now time.Time) bool {
	if len(h.Buckets) == 0 {
		return false
	}
	last := h.Buckets[len(h.Buckets)-1]
	width := t.bucketSecondsAt(0)
	return width > 0 && last.Start/width == now.Unix()/width && !t.closedAfter(last, now)
}

// Add counts a deletion that is let through now. One that counts already counts
// from now: it leaves the bucket that it was in.
func (t Policy) Add(h State, now time.Time, d Deletion) State {
	now = now.Truncate(time.Microsecond)
	next := State{Buckets: slices.Clone(h.Buckets), Newest: h.Newest, Earlier: h.Earlier, Committed: now}
	if i, known := t.bucketOf(h, now, d); known {
		next.Buckets[i].Count -= min(d.Count, next.Buckets[i].Count)
		next.Newest, next.Earlier = without(h.Newest, d.UID), without(h.Earlier, d.UID)
	}
	if !t.isCurrent(h, now) {
		next.Buckets = t.compact(append(next.Buckets, v1alpha1.DeletionBucket{Start: now.Unix(), End: now.Unix() + 1}), now)
		next.Newest, next.Earlier = nil, lastUIDs(next.Newest, maxEarlier)
	}
	if !t.endedRecently(next, len(next.Buckets)-2, now) {
		next.Earlier = nil
	}
	last := &next.Buckets[len(next.Buckets)-1]
	last.End = max(last.End, now.Unix()+1)
	last.Count += d.Count
	next.Newest = lastUIDs(append(slices.Clone(next.Newest), d.UID), maxNewest)
	return next
}

// without returns the UIDs but for one.
func without(all []types.UID, uid types.UID) []types.UID {
	return slices.DeleteFunc(slices.Clone(all), func(u types.UID) bool { return u == uid })
}

// newest are the last of the UIDs. Who is dropped counts twice if asked again,
// which is the safe direction.
func lastUIDs(all []types.UID, most int) []types.UID { return all[max(0, len(all)-most):] }

// compact merges buckets that need not be told apart any more, and drops those
// that are of no use. The last one stays as it is.
func (t Policy) compact(all []v1alpha1.DeletionBucket, now time.Time) []v1alpha1.DeletionBucket {
	var kept []v1alpha1.DeletionBucket
	for i, b := range all {
		width := t.bucketSecondsAt(now.Sub(time.Unix(b.End, 0)))
		switch before := len(kept) - 1; {
		case width == 0 && i < len(all)-1:
			// It counts for nothing.
		case before >= 0 && i < len(all)-1 && kept[before].Start/width == b.Start/width && t.sameSideOfClose(kept[before], b):
			kept[before] = merge(kept[before], b)
		default:
			kept = append(kept, b)
		}
	}
	return t.bound(kept)
}

// bound merges the oldest until the schema takes them. Rules that make more
// buckets than these are hard to think of.
func (t Policy) bound(kept []v1alpha1.DeletionBucket) []v1alpha1.DeletionBucket {
	for i := 0; len(kept) > maxBuckets && i < len(kept)-2; {
		if !t.sameSideOfClose(kept[i], kept[i+1]) {
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
func (t Policy) sameSideOfClose(a, b v1alpha1.DeletionBucket) bool {
	return t.Closed.IsZero() || (a.Start <= t.Closed.Unix()) == (b.Start <= t.Closed.Unix())
}

// forgiven says whether a person closed the breaker after the bucket. The
// second in which it was closed is over before that counts: no second is both.
func (t Policy) closedAfter(b v1alpha1.DeletionBucket, now time.Time) bool {
	return !t.Closed.IsZero() && now.Unix() > t.Closed.Unix() && b.Start <= t.Closed.Unix()
}
