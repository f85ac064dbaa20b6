package v1alpha1

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// FuzzParseInterval parses intervals. A duration that Go writes is read as the same
// duration, and days add exactly 24 hours.
func FuzzParseInterval(f *testing.F) {
	for _, s := range []string{"90s", "1d", "1d12h", "30d", "1d-1s", "1d+1h", "d", "1dd", "-1d", "1d24h", "106751d23h59m59s", "106752d", "4294967296d", "0x1d", "1.5d", "9223372036854775807ns"} {
		f.Add(s, uint16(1), int64(90*time.Second))
	}
	f.Fuzz(func(t *testing.T, s string, days uint16, rest int64) {
		if d, err := ParseInterval(s); err == nil {
			again, err := ParseInterval(d.String())
			if err != nil || again != d {
				t.Errorf("%q is %s, which is %s, %v", s, d, again, err)
			}
		}
		part := time.Duration(rest&math.MaxInt64) % day
		d, err := ParseInterval(fmt.Sprintf("%dd%s", days, part))
		if want := time.Duration(days)*day + part; err != nil || d != want {
			t.Errorf("%dd%s is %s, %v; want %s", days, part, d, err, want)
		}
	})
}
