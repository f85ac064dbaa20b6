package lifecycle

import (
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// maxBackoff is also the longest interval between retries of a leaked grant.
const maxBackoff = time.Hour

// Backoff returns the delay after the given number of failures. The delay
// doubles with each failure, up to 100 % jitter is added (random is 0 to 1),
// and it is at most an hour.
func Backoff(r api.Retry, failures int, random float64) time.Duration {
	base := seconds(r.BackoffSeconds)
	for range failures - 1 {
		if base *= 2; base >= maxBackoff {
			base = maxBackoff
			break
		}
	}
	return min(base+time.Duration(random*float64(base)), maxBackoff)
}
