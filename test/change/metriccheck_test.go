//go:build controlplane

package change

import (
	"fmt"
	"strings"
	"testing"

	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

func TestAMistakeInAMetricCheckIsNamedOnce(t *testing.T) {
	t.Parallel()
	for field, causes := range map[string]map[string]string{
		"analysisDuration":     {"5m": "", "24h": "", "5 minutes": "write a duration from 1m to 24h, for example 5m", "5s": "write a duration from 1m to 24h, for example 5m"},
		"warmUp":               {"0s": "", "1.5m": "", "5m": "write a duration from 0s to below analysisDuration, for example 30s", "x": "write a duration from 0s to below analysisDuration, for example 30s"},
		"probation":            {"1m": "", "1h30m": "", "1d": "write a duration from 1m to 72h, for example 24h"},
		"maxFalsePositiveRate": {"1%": "", "0.5%": "", "20.0%": "", "150%": "write a percentage above 0% and at most 20%, for example 1%", "0%": "write a percentage above 0% and at most 20%, for example 1%"},
	} {
		for value, want := range causes {
			manifest := fmt.Sprintf("apiVersion: judge.breakwater.dev/v1alpha1\nkind: MetricCheck\nmetadata: {name: web, namespace: default}\nspec: {%s: %q}\n", field, value)
			r, err := runner.Kubectl{}.RunWithInput(t.Context(), manifest, "create", "--dry-run=server", "-f", "-")
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Errors(); (want == "") != (r.Code == 0) || !strings.Contains(got, want) || strings.Count(got, "spec.") > 1 {
				t.Errorf("%s: %s: got %s, want %q", field, value, r, want)
			}
		}
	}
}
