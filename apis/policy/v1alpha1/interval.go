package v1alpha1

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MinInterval and MaxInterval bound the interval of a LimitRule.
const (
	MinInterval = 10 * time.Second
	MaxInterval = 30 * day

	day = 24 * time.Hour
)

// ParseInterval reads a Go duration that may begin with days: 90s, 1d, 1d12h.
func ParseInterval(s string) (time.Duration, error) {
	days, rest, hasDays := strings.Cut(s, "d")
	if !hasDays {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/day)-1 {
		return 0, fmt.Errorf("invalid days %q", days)
	}
	d := time.Duration(n) * day
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || more >= day {
		return 0, fmt.Errorf("invalid duration %q after the days", rest)
	}
	return d + more, nil
}
