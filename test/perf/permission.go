package perf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// permissions are the measurements of TestPermission.
type permissions struct {
	Machine string
	// Bare and Authorized are the times from the creation of a pod until its app
	// container runs. A bare pod has an init container that exits immediately.
	Bare, Authorized []time.Duration
	// Server is the duration of the calls of init containers, as the
	// init-action-server reports it.
	Server []time.Duration
	// Rates are applications per second, by store.
	Rates map[string]float64
	// Image is the compressed size of the image of init-action-client, in bytes.
	Image int64
}

func (m permissions) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s A start is the time from the creation of a pod until its app container runs. %d bare and %d authorized pods "+
		"are started alternately, one at a time. A bare pod has an init container that exits immediately; an authorized pod waits for a provider "+
		"that grants immediately.\n\n", m.Machine, len(m.Bare), len(m.Authorized))
	s.WriteString("| measure | target | bare | Breakwater |\n|---|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	milli := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	more := func(share float64) string {
		bare, authorized := quantile(m.Bare, share), quantile(m.Authorized, share)
		return fmt.Sprintf("%s, %s more", milli(authorized), milli(authorized-bare))
	}
	row("start, median", "500 ms more", milli(quantile(m.Bare, 0.5)), more(0.5))
	row("start, p90", "", milli(quantile(m.Bare, 0.9)), more(0.9))
	row("call to the init-action-server within the start, median", "", "", milli(quantile(m.Server, 0.5)))
	row("the same, p90", "", "", milli(quantile(m.Server, 0.9)))
	for _, store := range slices.Sorted(maps.Keys(m.Rates)) {
		row("applications per second, permission centre with "+store, "", "", fmt.Sprintf("%.0f", m.Rates[store]))
	}
	row("image of init-action-client", "10 MB", "", fmt.Sprintf("%.1f MB", float64(m.Image)/1e6))
	return s.String()
}
