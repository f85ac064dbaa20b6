// Command dashboardgen writes the Grafana dashboards, config/monitoring/300-dashboards.yaml, from
// the definitions of internal/metrics: a panel for each metric, and an overview. Every defined
// metric is on a dashboard, and a dashboard has no undefined metric. `make generate` runs it.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const path = "config/monitoring/300-dashboards.yaml"

func main() {
	text, err := manifest()
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

const head = `# Grafana dashboards, generated from internal/metrics by make generate. The label is the one by which
# Grafana's sidecar finds dashboards; otherwise import the JSON.
apiVersion: v1
kind: ConfigMap
metadata:
  name: breakwater-dashboards
  namespace: altershieldoperator-system
  labels:
    app.kubernetes.io/part-of: breakwater
    app.kubernetes.io/component: monitoring
    grafana_dashboard: "1"
data:
`

// manifest returns the ConfigMap with the dashboards.
func manifest() (string, error) {
	var out strings.Builder
	out.WriteString(head)
	for _, d := range []dashboard{overview(), details()} {
		raw, err := json.MarshalIndent(d, "    ", " ")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "  %s.json: |\n    %s\n", d.UID, raw)
	}
	return out.String(), nil
}

// question is a panel of the overview: what a person on call looks at first.
type question struct{ title, expr, help string }

var questions = []question{
	{"Held releases", "max by (reason) (breakwater_releases_held)", "0 is normal. Runbook ReleaseHeld."},
	{"Age of the oldest batch", "max(breakwater_oldest_batch_age_seconds)", "Seconds. Above 1800: runbook BatchStuck."},
	{"Unenforced guards", "max by (reason) (breakwater_guard_unenforced)", "0 is normal. Runbook BreakwaterGuardUnenforced."},
	{"Denied requests", increase(`breakwater_admission_requests_total{allowed="false",dry_run="false"}`, "webhook"), "Within 15 minutes, by webhook."},
	{"Open breakers of flow controls", "max by (name) (breakwater_deletionflow_breaker_open)", "1: deletions are denied, or only reported in shadow mode. Runbook PodDeletionBreakerOpen."},
	{"Pods without their permissions", "max by (reason) (breakwater_permission_uninjected_pods)", "0 is normal. Runbook PodsWithoutPermission."},
	{"Leaked grants", "max by (provider) (breakwater_permission_centre_leaked_grants)", "0 is normal. Runbook PermissionsLeaked."},
	{"Dead letters", increase("breakwater_dead_letters_total", "type"), "Within 15 minutes. Runbook DeadLetters."},
	{"Versions", "count by (version) (breakwater_build_info)", "Processes by version: two during an upgrade."},
}

func overview() dashboard {
	d := newDashboard("breakwater-overview", "Breakwater")
	for _, q := range questions {
		d.add(panel{Title: q.title, Description: q.help, Type: "timeseries", Targets: []target{{Expr: q.expr}}})
	}
	return d
}

// details has a row for each group in docs/metrics.md, and a panel for each metric.
func details() dashboard {
	d := newDashboard("breakwater-details", "Breakwater: all metrics")
	for _, g := range metrics.Groups() {
		d.add(panel{Title: g.Title, Type: "row"})
		for _, m := range g.Metrics {
			d.add(panel{
				Title: strings.TrimPrefix(m.Name, "breakwater_"), Description: description(m), Type: "timeseries", Targets: targets(m),
				FieldConfig: fieldConfig{Defaults: defaults{Unit: unit(m)}},
			})
		}
	}
	return d
}

func description(m metrics.Definition) string {
	switch m.Type() {
	case metrics.TypeCounter:
		return m.Help + " The panel shows the increase within 15 minutes."
	case metrics.TypeHistogram:
		return m.Help + " The panel shows the quantiles of 15 minutes."
	default:
		return m.Help
	}
}

// targets returns the queries for a metric.
func targets(m metrics.Definition) []target {
	switch m.Type() {
	case metrics.TypeCounter:
		return []target{{Expr: increase(m.Name, m.Labels...)}}
	case metrics.TypeHistogram:
		var out []target
		for _, quantile := range []string{"0.5", "0.99"} {
			out = append(out, target{
				Expr:   fmt.Sprintf("histogram_quantile(%s, %s)", quantile, increase(m.Name+"_bucket", "le")),
				Legend: "quantile " + quantile,
			})
		}
		return out
	default:
		expr := fmt.Sprintf("%s%s (%s)", aggregation(m), by(m.Labels), m.Name)
		if unit(m) == unitDate {
			expr += " * 1000"
		}
		return []target{{Expr: expr}}
	}
}

// increase returns the query for the increase of a counter within 15 minutes, as the alerts have it. rate() and increase()
// miss the first sample of a series, which is the first event of a process with these labels.
func increase(counter string, labels ...string) string {
	return fmt.Sprintf("sum%[2]s ((max_over_time(%[1]s[15m]) unless max_over_time(%[1]s[15m] offset 15m)) or increase(%[1]s[15m]))", counter, by(labels))
}

// aggregation returns how the values that several processes have of a gauge are combined.
func aggregation(m metrics.Definition) string {
	switch {
	case m.SummedOverProcesses:
		return "sum"
	case m.LeastIsWorst:
		return "min"
	default:
		return "max"
	}
}

func by(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return " by (" + strings.Join(labels, ", ") + ")"
}

// unitDate is the unit of a Unix time in milliseconds.
const unitDate = "dateTimeFromNow"

// unit returns the unit as Grafana names it.
func unit(m metrics.Definition) string {
	switch {
	case strings.HasSuffix(m.Name, "timestamp_seconds"):
		return unitDate
	case m.Unit == "seconds":
		return "s"
	default:
		return "short"
	}
}
