package deletionwindow

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// maxBuckets, maxNewest and maxEarlier equal maxItems of the schema.
	maxBuckets = 512
	maxNewest  = 1024
	maxEarlier = 256
	// retrySeconds is how long after the end of a bucket a request may be repeated:
	// the API server calls webhooks when it marks a pod as terminating, when it
	// removes it, and after a conflict.
	retrySeconds = 10
)

// State is the record of the deletions that were allowed.
type State struct {
	// Buckets are sorted, oldest first, and overlap by at most a second.
	Buckets []v1alpha1.DeletionBucket
	// Newest are the UIDs in the last bucket, Earlier the last UIDs in the bucket
	// before it.
	Newest, Earlier []types.UID
	// Committed is the time of the last committed decision.
	Committed time.Time
}

// StateOf returns the state in a status, with which it shares its slices.
func StateOf(status *v1alpha1.PodDeletionFlowControlStatus) State {
	s := State{Buckets: status.Buckets, Newest: status.Newest, Earlier: status.Earlier}
	if status.CommittedTime != nil {
		s.Committed = status.CommittedTime.Time
	}
	return s
}

// Store writes the state into a status.
func (s State) Store(status *v1alpha1.PodDeletionFlowControlStatus) {
	status.Buckets, status.Newest, status.Earlier = s.Buckets, s.Newest, s.Earlier
	status.CommittedTime = nil
	if !s.Committed.IsZero() {
		t := metav1.NewMicroTime(s.Committed)
		status.CommittedTime = &t
	}
}

// Deletion is the deletion of a pod, or of a namespace with all its pods.
type Deletion struct {
	UID types.UID
	// Count is the number of pods.
	Count int64
	// IsNamespace reports whether it deletes a namespace. A repeated request counts
	// once only within its bucket, because the namespace may have grown.
	IsNamespace bool
}

// IsCounted decides whether a deletion is counted already, as a repeated request.
func (p Policy) IsCounted(s State, now time.Time, d Deletion) bool {
	_, ok := p.bucketOf(s, now, d)
	return ok
}

// bucketOf returns the index of the bucket in which a recent deletion is counted.
func (p Policy) bucketOf(s State, now time.Time, d Deletion) (i int, ok bool) {
	last := len(s.Buckets) - 1
	switch {
	case slices.Contains(s.Newest, d.UID):
		return last, p.isCurrent(s, now) || (!d.IsNamespace && p.endedRecently(s, last, now))
	case slices.Contains(s.Earlier, d.UID):
		return last - 1, !d.IsNamespace && p.endedRecently(s, last-1, now)
	}
	return 0, false
}

// endedRecently reports whether requests counted in a bucket may still be repeated.
func (p Policy) endedRecently(s State, i int, now time.Time) bool {
	return i >= 0 && now.Unix() < s.Buckets[i].End+retrySeconds && !p.closedAfter(s.Buckets[i], now)
}

// isCurrent reports whether a deletion at this time belongs to the last bucket.
func (p Policy) isCurrent(s State, now time.Time) bool {
	if len(s.Buckets) == 0 {
		return false
	}
	last := s.Buckets[len(s.Buckets)-1]
	width := p.bucketSecondsAt(0)
	return width > 0 && last.Start/width == now.Unix()/width && !p.closedAfter(last, now)
}

// Add counts a deletion at this time. A deletion that is counted already moves to
// the last bucket.
func (p Policy) Add(s State, now time.Time, d Deletion) State {
	now = now.Truncate(time.Microsecond)
	next := State{Buckets: slices.Clone(s.Buckets), Newest: s.Newest, Earlier: s.Earlier, Committed: now}
	if i, known := p.bucketOf(s, now, d); known {
		next.Buckets[i].Count -= min(d.Count, next.Buckets[i].Count)
		next.Newest, next.Earlier = without(s.Newest, d.UID), without(s.Earlier, d.UID)
	}
	if !p.isCurrent(s, now) {
		next.Buckets = p.compact(append(next.Buckets, v1alpha1.DeletionBucket{Start: now.Unix(), End: now.Unix() + 1}), now)
		next.Newest, next.Earlier = nil, lastUIDs(next.Newest, maxEarlier)
	}
	if !p.endedRecently(next, len(next.Buckets)-2, now) {
		next.Earlier = nil
	}
	last := &next.Buckets[len(next.Buckets)-1]
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

// compact merges buckets to the length that their age allows and drops those that
// are not needed. The last bucket stays as it is.
func (p Policy) compact(all []v1alpha1.DeletionBucket, now time.Time) []v1alpha1.DeletionBucket {
	var kept []v1alpha1.DeletionBucket
	for i, b := range all {
		width := p.bucketSecondsAt(now.Sub(time.Unix(b.End, 0)))
		switch before := len(kept) - 1; {
		case width == 0 && i < len(all)-1:
			// not needed anymore
		case before >= 0 && i < len(all)-1 && kept[before].Start/width == b.Start/width && p.sameSideOfClose(kept[before], b):
			kept[before] = merge(kept[before], b)
		default:
			kept = append(kept, b)
		}
	}
	return p.bound(kept)
}

// bound merges the oldest buckets until the schema accepts them. No realistic
// rules need this.
func (p Policy) bound(kept []v1alpha1.DeletionBucket) []v1alpha1.DeletionBucket {
	for i := 0; len(kept) > maxBuckets && i < len(kept)-2; {
		if !p.sameSideOfClose(kept[i], kept[i+1]) {
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

// sameSideOfClose reports whether both buckets are before, or both after, the time at
// which a person closed the breaker.
func (p Policy) sameSideOfClose(a, b v1alpha1.DeletionBucket) bool {
	return p.Closed.IsZero() || (a.Start <= p.Closed.Unix()) == (b.Start <= p.Closed.Unix())
}

// closedAfter reports whether a person closed the breaker after the bucket. It counts
// from the second after the closing, so that no second is on both sides.
func (p Policy) closedAfter(b v1alpha1.DeletionBucket, now time.Time) bool {
	return !p.Closed.IsZero() && now.Unix() > p.Closed.Unix() && b.Start <= p.Closed.Unix()
}
