package deletionwindow

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// DefaultSkew is how far a replica's clock may differ from the API server's.
const DefaultSkew = 5 * time.Second

const (
	// maxIntervalCells is the maximum number of cells per interval. The minimum is more than
	// half of it, except for intervals of up to 32 s, which have one cell per second.
	maxIntervalCells = 64
	// keptIntervals is how many intervals of the longest rule are kept: the
	// present one and seven that it is compared with.
	keptIntervals = 8
)

// Rule is one limit rule.
type Rule struct {
	// Text is the interval as written in the spec.
	Text string
	// Interval is the parsed interval.
	Interval time.Duration
	// Limit is the maximum number of deletions per window.
	Limit int64
}

// Policy is a parsed PodDeletionFlowControl.
type Policy struct {
	// Rules are sorted by interval, shortest first.
	Rules []Rule
	// Skew is how far a clock may differ from the API server's.
	Skew time.Duration
	// ClosedTime is when a person closed the breaker: earlier deletions do not count.
	// Zero: never.
	ClosedTime time.Time
}

// ParsePolicy parses a flow control. An error names the field.
func ParsePolicy(f *v1alpha1.PodDeletionFlowControl, skew time.Duration) (Policy, error) {
	p := Policy{Skew: skew, ClosedTime: f.ClosedTime()}
	for i, r := range f.Spec.LimitRules {
		interval, err := v1alpha1.ParseInterval(r.Interval)
		if err != nil || interval <= 0 {
			return Policy{}, fmt.Errorf("spec.limitRules[%d].interval: %q is not a duration", i, r.Interval)
		}
		p.Rules = append(p.Rules, Rule{Text: r.Interval, Interval: interval, Limit: r.Limit})
	}
	slices.SortStableFunc(p.Rules, func(a, b Rule) int { return int(min(max(a.Interval-b.Interval, -1), 1)) })
	return p, nil
}

// effectiveInterval is how long a deletion counts after the end of its cell.
func (p Policy) effectiveInterval(r Rule) time.Duration { return r.Interval + 2*p.Skew }

// CellSeconds is the length of the rule's cells in seconds. It is a power of
// two, so that a longer cell consists of whole shorter ones.
func (r Rule) CellSeconds() int64 { return powerOfTwo(r.Interval / maxIntervalCells) }

// powerOfTwo returns d in seconds, rounded up to a power of two.
func powerOfTwo(d time.Duration) int64 {
	seconds := (int64(d) + int64(time.Second) - 1) / int64(time.Second)
	if seconds <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(seconds-1))
}

// cellSecondsAt is the maximum length of a cell of that age in seconds: that of
// the shortest rule that still counts it. Older cells only serve Median. 0: the
// cell is not needed anymore.
func (p Policy) cellSecondsAt(age time.Duration) int64 {
	for _, r := range p.Rules {
		if age < p.effectiveInterval(r) {
			return r.CellSeconds()
		}
	}
	if len(p.Rules) == 0 {
		return 0
	}
	longest := p.Rules[len(p.Rules)-1]
	if age < keptIntervals*longest.Interval {
		return max(powerOfTwo(longest.Interval/2), longest.CellSeconds())
	}
	return 0
}
