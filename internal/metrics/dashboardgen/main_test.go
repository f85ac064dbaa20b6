package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

func TestTheDashboardsAreCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := manifest()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of date: run make generate", path)
	}
}

func TestEveryMetricIsOnADashboardAndNoOther(t *testing.T) {
	text, err := manifest()
	if err != nil {
		t.Fatal(err)
	}
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(text), &configMap); err != nil {
		t.Fatal(err)
	}
	unseen := map[string]bool{}
	for _, g := range metrics.Groups() {
		for _, m := range g.Metrics {
			unseen[m.Name] = true
		}
	}
	name := regexp.MustCompile(`\bbreakwater_[a-z_]*[a-z]\b`)
	for file, content := range configMap.Data {
		var d dashboard
		if err := json.Unmarshal([]byte(content), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				for _, found := range name.FindAllString(q.Expr, -1) {
					found = regexp.MustCompile(`_bucket$`).ReplaceAllString(found, "")
					metrics.Find(found) // panics if there is no such metric
					delete(unseen, found)
				}
			}
		}
	}
	for m := range unseen {
		t.Errorf("%s is on no dashboard", m)
	}
}

func TestAGaugeOfAProcessIsSummed(t *testing.T) {
	for _, g := range metrics.Groups() {
		for _, m := range g.Metrics {
			ofProcess := m.Type() == metrics.TypeGauge && strings.Contains(m.Help, " this process")
			if m.SummedOverProcesses != ofProcess {
				t.Errorf("%s: SummedOverProcesses is %v, but its description is %q", m.Name, m.SummedOverProcesses, m.Help)
			}
			if ofProcess && !strings.HasPrefix(targets(m)[0].Expr, "sum") {
				t.Errorf("%s: the query is %s", m.Name, targets(m)[0].Expr)
			}
		}
	}
}

// The worst value of a process must be seen.
func TestAStateOfWhichTheLeastIsWorstIsDrawnAsItsMinimum(t *testing.T) {
	for _, name := range []string{
		"breakwater_event_broker_resolved", "breakwater_certificate_expiry_timestamp_seconds",
		"breakwater_workload_kind_watched", "breakwater_permission_centre_last_pod_report_timestamp_seconds",
	} {
		if got := targets(metrics.Find(name))[0].Expr; !strings.HasPrefix(got, "min") {
			t.Errorf("the query is %s", got)
		}
	}
}

// Grafana reads the unit of a date in milliseconds.
func TestATimeIsDrawnInMilliseconds(t *testing.T) {
	for _, g := range metrics.Groups() {
		for _, m := range g.Metrics {
			if got := targets(m)[0].Expr; (unit(m) == unitDate) != strings.HasSuffix(got, ") * 1000") {
				t.Errorf("the query of a panel with unit %s is %s", unit(m), got)
			}
		}
	}
}

func TestTheOverviewAggregatesGaugesAsTheDetailsDo(t *testing.T) {
	query := regexp.MustCompile(`^(\w+)[^(]*(?: by \([^)]*\) )?\((breakwater_\w+)\)$`)
	for _, q := range questions {
		m := query.FindStringSubmatch(q.expr)
		if m == nil || m[2] == "breakwater_build_info" {
			continue
		}
		if want := aggregation(metrics.Find(m[2])); m[1] != want {
			t.Errorf("%s: the query is %s, want %s", q.title, q.expr, want)
		}
	}
}

func TestAlertsAggregateGaugesAsTheDashboardsDo(t *testing.T) {
	files, err := filepath.Glob("../../../config/monitoring/*-rules-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no rules", err)
	}
	query := regexp.MustCompile(`\b(min|max|sum)(?: by \([^)]*\))? ?\((breakwater_\w+)`)
	for _, file := range files {
		rules, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range query.FindAllStringSubmatch(string(rules), -1) {
			if d := metrics.Find(m[2]); d.Type() == metrics.TypeGauge && m[1] != aggregation(d) {
				t.Errorf("%s: %s, want %s", file, m[0], aggregation(d))
			}
		}
	}
}

// The names of decisions do not say which ones deny.
func TestThePanelOfDenialsHasEveryDecision(t *testing.T) {
	for _, q := range questions {
		if q.title == "Denied requests" && (!strings.Contains(q.expr, `allowed="false"`) || strings.Contains(q.expr, "decision")) {
			t.Errorf("the panel selects %s", q.expr)
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for _, d := range []dashboard{overview(), details()} {
		taken := map[[2]int]string{}
		for _, p := range d.Panels {
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, ok := taken[[2]int{x, y}]; ok || x >= width {
						t.Fatalf("%s: panel %s overlaps %s or the edge", d.Title, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
