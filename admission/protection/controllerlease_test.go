package protection

import (
	"strings"
	"testing"
	"time"
)

func TestTheLeaseTimeoutIsADurationOrZero(t *testing.T) {
	for value, want := range map[string]time.Duration{"": time.Minute, "0": 0, "0s": 0, "30s": 30 * time.Second, "2m": 2 * time.Minute} {
		if got, err := parseLeaseTimeout(value); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", value, got, err, want)
		}
	}
	for _, value := range []string{"1", "soon", "29s", "-1m"} {
		if _, err := parseLeaseTimeout(value); err == nil || !strings.Contains(err.Error(), "CONTROLLER_LEASE_TIMEOUT") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
