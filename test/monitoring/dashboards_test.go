package monitoring

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// A window of rate must have two samples. That of Grafana's $__rate_interval has one if the metrics are pushed each minute, and a
// function may push once.
func TestPanelsOfHistogramsNeedOneSample(t *testing.T) {
	histogram := regexp.MustCompile(`\b(breakwater_\w+_bucket)\b`)
	var tests strings.Builder
	panels := 0
	for _, expr := range queries(t) {
		series := histogram.FindString(expr)
		if series == "" {
			continue
		}
		panels++
		fmt.Fprintf(&tests, "- interval: 1m\n  input_series: [{series: '%s{le=\"1\"}', values: '_x10 2'}, {series: '%[1]s{le=\"+Inf\"}', values: '_x10 2'}]\n  promql_expr_test:\n", series)
		fmt.Fprintf(&tests, "  - {expr: 'round(%s, 0.5)', eval_time: 10m, exp_samples: [{labels: '{}', value: %s}]}\n", expr, map[bool]string{true: "0.5", false: "1"}[strings.Contains(expr, "(0.5,")])
	}
	if panels < 4 {
		t.Errorf("%d panels of histograms, want at least 4", panels)
	}
	testRules(t, []byte("groups: []\n"), "rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n"+tests.String())
}

// The first sample of a counter is its first event. Each process that starts has new series.
func TestPanelsOfCountersShowTheFirstEvent(t *testing.T) {
	counter := regexp.MustCompile(`\b(breakwater_\w+_total)\b(\{[^}]*\})?`)
	var tests strings.Builder
	panels := 0
	for _, expr := range queries(t) {
		series := counter.FindString(expr)
		if series == "" {
			continue
		}
		panels++
		fmt.Fprintf(&tests, "- interval: 15s\n  input_series: [{series: '%s', values: '_x40 3x80'}]\n  promql_expr_test:\n", series)
		for at, want := range map[string]int{"10m": 3, "20m": 3, "30m": 0} {
			fmt.Fprintf(&tests, "  - {expr: '%s', eval_time: %s, exp_samples: [{labels: '{}', value: %d}]}\n", expr, at, want)
		}
	}
	if panels < 30 {
		t.Errorf("%d panels of counters, want at least 30", panels)
	}
	testRules(t, []byte("groups: []\n"), "rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n"+tests.String())
}

// queries returns the queries of all dashboards.
func queries(t *testing.T) (all []string) {
	t.Helper()
	manifests(t, "config/monitoring/300-dashboards.yaml", func(file string, _ metav1.TypeMeta, text []byte) {
		var dashboards struct{ Data map[string]string }
		if err := yaml.Unmarshal(text, &dashboards); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for name, raw := range dashboards.Data {
			var dashboard struct {
				Panels []struct{ Targets []struct{ Expr string } }
			}
			if err := json.Unmarshal([]byte(raw), &dashboard); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, p := range dashboard.Panels {
				for _, q := range p.Targets {
					all = append(all, q.Expr)
				}
			}
		}
	})
	return all
}
