package lifecycle

import (
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// longestBackoff is also how often a leak is tried.
const longestBackoff = time.Hour

// Backoff is how long to wait after the given number of failures: the first
// wait doubles with each, up to as much again is added by random (0 to 1), and
// it is at most an hour.
func Backoff(r api.Retry, failures int, random float64) time.Duration {
	base := seconds(r.BackoffSeconds)
	for range failures - 1 {
		if base *= 2; base >= longestBackoff {
			base = longestBackoff
			break
		}
	}
	return min(base+time.Duration(random*float64(base)), longestBackoff)
}
