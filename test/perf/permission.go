package perf

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// permissions are the measurements of TestPermission.
type permissions struct {
	Machine string
	// Bare and Authorized are the times from the creation of a pod until its app
	// container runs. A bare pod has an init container that exits immediately.
	Bare, Authorized []time.Duration
	// BareAnnounced and Announced are the same times while the init-action-server uses the address that
	// the CNI plugin announces.
	BareAnnounced, Announced []time.Duration
	// Server is the duration of the calls of init containers, as the
	// init-action-server reports it.
	Server, ServerAnnounced []time.Duration
	// Rates are applications per second, by store.
	Rates map[string]applicationRates
	// Image is the compressed size of the image of init-action-client, in bytes.
	Image int64
}

// applicationRates are applications per second until they are granted: through the engine and over
// HTTP, and the bare transactions of the same rows.
type applicationRates struct{ Bare, Engine, HTTP float64 }

func (r applicationRates) cells() (bare, measured string) {
	return fmt.Sprintf("%.0f", r.Bare), fmt.Sprintf("%.0f in the process, %.1f × bare; %.0f over HTTP, %.1f × bare", r.Engine, r.Engine/r.Bare, r.HTTP, r.HTTP/r.Bare)
}

// figures returns those of starts and applications.
func (m permissions) figures() []figure {
	more := func(authorized, bare []time.Duration) float64 {
		return (quantile(authorized, 0.5) - quantile(bare, 0.5)).Seconds() * 1000
	}
	out := []figure{
		{"a start with permissions", "address announced by the CNI plugin: median more than with a bare init container",
			more(m.Announced, m.BareAnnounced), "ms", new(atMost(400))},
		{"a start with permissions", "address reported by the kubelet: the same", more(m.Authorized, m.Bare), "ms", nil},
	}
	for _, store := range slices.Sorted(maps.Keys(m.Rates)) {
		r := m.Rates[store]
		out = append(out,
			figure{"applications", store + ": per second over HTTP", r.HTTP, "", new(atLeast(1000))},
			figure{"applications", store + ": over HTTP, compared with bare transactions of the same rows", r.HTTP / r.Bare, "× bare", new(atLeast(0.33))})
	}
	return out
}

// markdown renders the measurements of starts and applications.
func (m permissions) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s A start is the time from the creation of a pod until its app container runs. %d bare and %d authorized pods "+
		"are started alternately, one at a time. A bare pod has an init container that exits immediately; an authorized pod waits for a provider "+
		"that grants immediately. Its address is announced by the CNI plugin, or reported by the kubelet. Applications per second are those of 64 clients until all are "+
		"granted; each commit is synced to disk; bare are the "+
		"three transactions of the same rows, with nothing else.\n\n", m.Machine, len(m.Bare), len(m.Authorized))
	s.WriteString("| measure | bare | Breakwater |\n|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	milli := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	start := func(what string, all, authorized []time.Duration, share float64) {
		bare, took := quantile(all, share), quantile(authorized, share)
		row(what, milli(bare), fmt.Sprintf("%s, %s more", milli(took), milli(took-bare)))
	}
	start("start with the announced address, median", m.BareAnnounced, m.Announced, 0.5)
	start("the same, p90", m.BareAnnounced, m.Announced, 0.9)
	start("start with the address in the status (default), median", m.Bare, m.Authorized, 0.5)
	start("the same, p90", m.Bare, m.Authorized, 0.9)
	row("call to the init-action-server within the start, median", "", milli(quantile(m.Server, 0.5)))
	row("the same with the announced address", "", milli(quantile(m.ServerAnnounced, 0.5)))
	for _, store := range slices.Sorted(maps.Keys(m.Rates)) {
		bare, measured := m.Rates[store].cells()
		row("applications per second, permission centre with "+store, bare, measured)
	}
	row("image of init-action-client", "", fmt.Sprintf("%.1f MB", float64(m.Image)/1e6))
	return s.String()
}

// benchmarkLine is a line of BenchmarkApplications.
var benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkApplications/(\w+?)(?:-\d+)?\s(.*)$`)

// parseRates reads the output of BenchmarkApplications.
func parseRates(out string) (map[string]applicationRates, error) {
	rates := map[string]applicationRates{}
	for _, line := range benchmarkLine.FindAllStringSubmatch(out, -1) {
		byUnit := map[string]float64{}
		fields := strings.Fields(line[2])
		for i := 1; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, err
			}
			byUnit[fields[i+1]] = value
		}
		rates[line[1]] = applicationRates{byUnit["bare/s"], byUnit["engine/s"], byUnit["http/s"]}
	}
	if len(rates) == 0 {
		return nil, fmt.Errorf("no rates in %s", out)
	}
	return rates, nil
}
