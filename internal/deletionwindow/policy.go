package deletionwindow

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// DefaultSkew is how far the clock of a replica may be from that of the API
// server.
const DefaultSkew = 5 * time.Second

const (
	// buckets is into how many an interval is divided at most, and into more
	// than half as many at least.
	maxIntervalBuckets = 64
	// lookBack is how many intervals of the longest rule are kept, the current
	// one among them: seven are what it is compared with.
	keptIntervals = 8
)

// Rule is one window.
type Rule struct {
	// Text is the interval as it was written.
	Text string
	// Interval is its length.
	Interval time.Duration
	// Limit is how many deletions no window has more of.
	Limit int64
}

// Terms are what a decision follows besides the history.
type Policy struct {
	// Rules, the shortest first.
	Rules []Rule
	// Skew is how far a clock may be from the true time.
	Skew time.Duration
	// Closed is when a person closed the breaker: what was let through until
	// then does not count. Zero: nobody did.
	Closed time.Time
}

// TermsOf reads the terms of a flow control. An error names the field.
func ParsePolicy(f *v1alpha1.PodDeletionFlowControl, skew time.Duration) (Policy, error) {
	t := Policy{Skew: skew, Closed: f.ClosedTime()}
	for i, r := range f.Spec.LimitRules {
		interval, err := v1alpha1.ParseInterval(r.Interval)
		if err != nil || interval <= 0 {
			return Policy{}, fmt.Errorf("spec.limitRules[%d].interval: %q is no duration", i, r.Interval)
		}
		t.Rules = append(t.Rules, Rule{Text: r.Interval, Interval: interval, Limit: r.Limit})
	}
	slices.SortStableFunc(t.Rules, func(a, b Rule) int { return int(min(max(a.Interval-b.Interval, -1), 1)) })
	return t, nil
}

// effective is how long a deletion counts after the end of its bucket.
func (t Policy) effectiveInterval(r Rule) time.Duration { return r.Interval + 2*t.Skew }

// Width is how long a bucket of the rule is, in seconds. Powers of two: a
// longer bucket holds whole shorter ones.
func (r Rule) BucketSeconds() int64 { return powerOfTwo(r.Interval / maxIntervalBuckets) }

// powerOfTwo returns the seconds of the shortest power of two that is not
// shorter.
func powerOfTwo(d time.Duration) int64 {
	seconds := (int64(d) + int64(time.Second) - 1) / int64(time.Second)
	if seconds <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(seconds-1))
}

// widthAt is how long the bucket of a deletion may be that is so long ago:
// short enough for the shortest rule that it still counts for. Beyond all
// rules it only is compared with. 0: it is of no use any more.
func (t Policy) bucketSecondsAt(age time.Duration) int64 {
	for _, r := range t.Rules {
		if age < t.effectiveInterval(r) {
			return r.BucketSeconds()
		}
	}
	if len(t.Rules) == 0 {
		return 0
	}
	longest := t.Rules[len(t.Rules)-1]
	if age < keptIntervals*longest.Interval {
		return max(powerOfTwo(longest.Interval/2), longest.BucketSeconds())
	}
	return 0
}
