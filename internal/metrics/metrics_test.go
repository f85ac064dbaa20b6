package metrics

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
)

func TestNamesAndLabelsFollowTheConventions(t *testing.T) {
	name := regexp.MustCompile(`^breakwater(_[a-z]+)+$`)
	// Every label has a bounded set of values; see Definition.Labels.
	labels := strings.Fields("action allowed cluster decision dry_run format function go issuer kind method name operation permission policy process provider reason result revision route stage state status type verdict version webhook")
	seen := map[string]bool{}
	for _, g := range Groups() {
		if len(g.Components) == 0 {
			t.Errorf("%s: no process", g.Title)
		}
		for _, d := range g.Metrics {
			if seen[d.Name] {
				t.Errorf("%s: defined twice", d.Name)
			}
			seen[d.Name] = true
			if !name.MatchString(d.Name) {
				t.Errorf("%s: does not match %s", d.Name, name)
			}
			if strings.Contains(strings.TrimSuffix(d.Name, "_total"), "total") {
				t.Errorf("%s: total is the suffix of counters only", d.Name)
			}
			for _, suffix := range []string{"_count", "_sum", "_bucket", "_info"} {
				if strings.HasSuffix(d.Name, suffix) && d.Name != BuildInfo {
					t.Errorf("%s: the suffix %s is reserved", d.Name, suffix)
				}
			}
			if strings.HasSuffix(d.Name, "_total") && d.Bounds != nil {
				t.Errorf("%s: a histogram is named as a counter", d.Name)
			}
			for _, unit := range []string{"seconds", "bytes"} {
				if (d.Unit == unit) != strings.HasSuffix(strings.TrimSuffix(d.Name, "_total"), "_"+unit) {
					t.Errorf("%s: the unit is %q", d.Name, d.Unit)
				}
			}
			if d.Unit == "" && d.Type() != TypeGauge {
				t.Errorf("%s: a %s without a unit", d.Name, d.Type())
			}
			if !strings.HasSuffix(d.Help, ".") {
				t.Errorf("%s: the description is not a sentence: %q", d.Name, d.Help)
			}
			for _, l := range d.Labels {
				if !slices.Contains(labels, l) {
					t.Errorf("%s: label %q is not a standard one", d.Name, l)
				}
			}
		}
	}
}

func TestAMistakeInTheProgramPanics(t *testing.T) {
	for name, use := range map[string]func(){
		"no definition":        func() { NewCounter(noop.Meter{}, "breakwater_invented_total") },
		"another type":         func() { NewHistogram(noop.Meter{}, "breakwater_pods_finished_total") },
		"too few label values": func() { NewCounter(noop.Meter{}, "breakwater_orders_unjudged_total").Add(t.Context(), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			use()
		})
	}
}
