package deletionwindow

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Median returns the median count of the seven windows before the one that ends
// now, each as long as the rule's interval. A cell across two windows counts
// proportionally for both.
func Median(s State, r Rule, now time.Time) int64 {
	var before []float64
	for k := 1; k < keptIntervals; k++ {
		end := now.Add(-time.Duration(k) * r.Interval)
		var n float64
		for _, c := range s.Cells {
			n += float64(c.Count) * overlap(c, end.Add(-r.Interval), end)
		}
		before = append(before, n)
	}
	slices.Sort(before)
	return int64(before[len(before)/2] + 0.5)
}

// overlap is the fraction of a cell that lies between two times.
func overlap(c v1alpha1.DeletionCell, from, to time.Time) float64 {
	begin, end := max(c.Start, from.Unix()), min(c.End, to.Unix())
	if end <= begin {
		return 0
	}
	return float64(end-begin) / float64(c.End-c.Start)
}
