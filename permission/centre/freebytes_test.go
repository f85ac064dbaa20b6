package centre

import (
	"regexp"
	"strings"
	"testing"
)

// When the volume of SQLite is full, no pod gets permissions.
func TestTheFreeSpaceOfSQLiteIsAMetric(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		_, body := newFixture(t, address).adminGet("/metrics")
		found := regexp.MustCompile(`(?m)^breakwater_permission_centre_store_free_bytes [1-9]`).MatchString(body)
		if want := strings.HasPrefix(address, "sqlite:"); found != want {
			t.Errorf("the metric exists: %v, want %v", found, want)
		}
	})
}
