// Command metricsdocgen writes docs/metrics.md from the definitions of package
// metrics. `make generate` runs it in the repository's root.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const page = "docs/metrics.md"

const introduction = `# Metrics

<!-- Generated from internal/metrics by make generate: change it there. -->

The names are those of a Prometheus scrape. A histogram also has the suffixes _bucket, _sum
and _count. Sum counters and histograms over the pods, and also the gauges whose meaning says
"this process". For each other gauge, take the worst value of the pods. It is the largest, except for
these %d gauges, for which it is the smallest: %s.

- All functions except callback scale to zero, so a scrape misses them: send their metrics by OTLP
  (ConfigMap config-observability of config/core). The names stay the same.
- permission-centre serves /metrics on port http-admin, the other Deployments on port
  http-metrics; both are 9090.

Every process also exposes the metrics of the Go runtime and of its libraries, which are
not listed here. [Monitoring](monitoring.md) has PodMonitors, dashboards and alerts.
`

func main() {
	if err := os.WriteFile(page, []byte(render()), 0o644); err != nil {
		log.Fatal(err)
	}
}

// render returns the page.
func render() string {
	var out strings.Builder
	least := leastIsWorst()
	fmt.Fprintf(&out, introduction, len(least), list(least))
	for _, g := range metrics.Groups() {
		fmt.Fprintf(&out, "\n## %s\n\nComponents: %s.\n\n| name | type | unit | labels | meaning |\n|---|---|---|---|---|\n", g.Title, list(g.Components))
		for _, d := range g.Metrics {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type(), d.Unit, list(d.Labels), d.Help)
		}
	}
	return out.String()
}

// leastIsWorst returns the gauges whose least value is the worst.
func leastIsWorst() (names []string) {
	for _, g := range metrics.Groups() {
		for _, d := range g.Metrics {
			if d.LeastIsWorst {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

func list(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "`"+w+"`")
	}
	return strings.Join(quoted, ", ")
}
