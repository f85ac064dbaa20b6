//go:build controlplane

package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

func TestAMistakeInAMetricCheckIsNamedOnce(t *testing.T) {
	t.Parallel()
	for field, values := range map[string]struct {
		message          string
		accepted, denied []string
	}{
		"analysisDuration":     {"write a duration from 1m to 24h, for example 5m", []string{"5m", "24h", "1.5h2ms"}, []string{"5 minutes", "5s", "1..5m", "9999999999h"}},
		"warmUp":               {"write a duration of at least 0s and below analysisDuration, for example 30s", []string{"0s", "1.5m"}, []string{"5m", "x", "1..5m", "9999999999h"}},
		"probation":            {"write a duration from 1m to 72h, for example 24h", []string{"1m", "1h30m"}, []string{"1d", "1..5m", "9999999999h"}},
		"maxFalsePositiveRate": {"write a percentage above 0% and at most 20%, for example 1%", []string{"1%", "0.5%", "20.0%"}, []string{"150%", "0%"}},
	} {
		for _, value := range slices.Concat(values.accepted, values.denied) {
			manifest := fmt.Sprintf("apiVersion: judge.breakwater.dev/v1alpha1\nkind: MetricCheck\nmetadata: {name: web, namespace: default}\nspec: {%s: %q}\n", field, value)
			r, err := runner.Kubectl{}.RunWithInput(t.Context(), manifest, "create", "--dry-run=server", "-f", "-")
			if err != nil {
				t.Fatal(err)
			}
			denied, got := slices.Contains(values.denied, value), r.Errors()
			if denied != (r.Code != 0) || denied && !strings.Contains(got, values.message) || strings.Count(got, "spec.") > 1 {
				t.Errorf("%s: %s: got %s, want denied: %t", field, value, r, denied)
			}
		}
	}
}
