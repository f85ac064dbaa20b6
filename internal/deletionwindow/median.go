package deletionwindow

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Median returns the median count of the seven windows before the one that ends
// now, each as long as the rule's interval. A bucket across two windows counts
// proportionally for both.
func Median(s State, r Rule, now time.Time) int64 {
	var before []float64
	for k := 1; k < keptIntervals; k++ {
		end := now.Add(-time.Duration(k) * r.Interval)
		var n float64
		for _, b := range s.Buckets {
			n += float64(b.Count) * overlap(b, end.Add(-r.Interval), end)
		}
		before = append(before, n)
	}
	slices.Sort(before)
	return int64(before[len(before)/2] + 0.5)
}

// overlap is the fraction of a bucket that lies between two times.
func overlap(b v1alpha1.DeletionBucket, from, to time.Time) float64 {
	begin, end := max(b.Start, from.Unix()), min(b.End, to.Unix())
	if end <= begin {
		return 0
	}
	return float64(end-begin) / float64(b.End-b.Start)
}
