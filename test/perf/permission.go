package perf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// permissions are what the fourth part of the benchmark is about.
type permissions struct {
	Machine string
	// Bare and Authorized are how long pods took from their creation until their
	// app container ran; bare ones have an init container that exits at once.
	Bare, Authorized []time.Duration
	// Server is from the call of an init container to its end, as the server says.
	Server []time.Duration
	// Rates are applications a second, by store.
	Rates map[string]float64
	// Image is the size of the init-action-client, as it is pulled, in bytes.
	Image int64
}

func (m permissions) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %d pods each, one after the other, bare and authorised in turns, from the creation of the pod until its app container runs. "+
		"A bare pod has an init container that exits at once, an authorised one waits for a provider that grants at once.\n\n", m.Machine, len(m.Authorized))
	s.WriteString("| measure | target | bare | Breakwater |\n|---|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	milli := func(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
	more := func(share float64) string {
		bare, authorized := quantile(m.Bare, share), quantile(m.Authorized, share)
		return fmt.Sprintf("%s, %s more", milli(authorized), milli(authorized-bare))
	}
	row("start, median", "500 ms more", milli(quantile(m.Bare, 0.5)), more(0.5))
	row("start, p90", "", milli(quantile(m.Bare, 0.9)), more(0.9))
	row("of it the call to the init-action-server, median", "", "", milli(quantile(m.Server, 0.5)))
	row("the same, p90", "", "", milli(quantile(m.Server, 0.9)))
	for _, store := range slices.Sorted(maps.Keys(m.Rates)) {
		row("applications a second, centre on "+store, "", "", fmt.Sprintf("%.0f", m.Rates[store]))
	}
	row("image of init-action-client", "10 MB", "", fmt.Sprintf("%.1f MB", float64(m.Image)/1e6))
	return s.String()
}
