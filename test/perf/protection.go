package perf

import (
	"fmt"
	"strings"
	"time"
)

// protection is what the third part of the benchmark measures.
type protection struct {
	Machine string
	// Pods are those of a run.
	Pods int
	// Bare runs have no webhook and no policy of Breakwater in the cluster,
	// unguarded ones are in a namespace without a budget, guarded ones under a
	// budget that allows them all; each with 20 clients.
	Bare, Unguarded, Guarded []*deletions
	// Bare100 and Guarded100 have a hundred clients.
	Bare100, Guarded100 *deletions
	// BareOpen and GuardedOpen do not wait for answers.
	BareOpen, GuardedOpen *deletions
	// Writes20 and Writes100 are what the webhook wrote to the budget's status.
	Writes20, Writes100 writes
	// Handshakes are the connections that the webhooks accepted in a guarded
	// run with a hundred clients, the probes of the kubelet among them.
	Handshakes int
	// Room is for 300 of 400, with 20 clients; Crowd is 600 clients at once of
	// which 300 may pass.
	Room, Crowd *deletions
	// Left are the charges that were left when everything was over.
	Left int
}

const (
	roomPods, roomAllowed   = 400, 300
	crowdPods, crowdAllowed = 600, 300
	openRate                = 300
)

func (m protection) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s Runs of %d simulated pods; the middle one of %d. The clients are no masters; each has a connection of its own. "+
		"Bare is without any webhook or policy of Breakwater, at the same time on the same cluster.\n\n", m.Machine, m.Pods, len(m.Bare))
	s.WriteString("| measure | target | bare | Breakwater | OpenKruise 1.8 |\n|---|---|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	milli := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }
	bare, unguarded, guarded := middle(m.Bare), middle(m.Unguarded), middle(m.Guarded)
	pace := func(d, bare *deletions) string {
		return fmt.Sprintf("%.0f/s, %.2f ×", d.rate(), d.rate()/bare.rate())
	}
	rate := func(d *deletions) string { return fmt.Sprintf("%.0f/s", d.rate()) }
	perDelete := func(w writes, d int) string {
		return fmt.Sprintf("%.3f, %.3f conflicts", float64(w.Objects)/float64(d), float64(w.Refused)/float64(d))
	}
	row("unguarded deletes, 20 clients", "0.98 ×", rate(bare), pace(unguarded, bare), "0.88 ×")
	row("deletes under one budget that allows them, 20 clients", "0.5 ×", rate(bare), pace(guarded, bare), "0.035 × (0.16 × without its client's limits)")
	row("the same, 100 clients", "", rate(m.Bare100), pace(m.Guarded100, m.Bare100), "")
	row("status writes for an allowed delete, 20 clients", "0.3", "", perDelete(m.Writes20, m.Pods*len(m.Guarded)), "1.05")
	row("the same, 100 clients", "0.1", "", perDelete(m.Writes100, m.Pods), "1.0 and conflicts")
	row("p99, 100 clients", "50 ms more", milli(m.Bare100.quantile(0.99)),
		fmt.Sprintf("%s, %s more", milli(m.Guarded100.quantile(0.99)), milli(m.Guarded100.quantile(0.99)-m.Bare100.quantile(0.99))), "over 1 s more")
	row("p50, 100 clients", "", milli(m.Bare100.quantile(0.5)), milli(m.Guarded100.quantile(0.5)), "")
	row(fmt.Sprintf("p99 at %d deletes/s that wait for nobody", openRate), "100 ms", milli(m.BareOpen.quantile(0.99)), milli(m.GuardedOpen.quantile(0.99)), "not reached")
	row("p50 at the same", "", milli(m.BareOpen.quantile(0.5)), milli(m.GuardedOpen.quantile(0.5)), "")
	row(fmt.Sprintf("false refusals, %d of %d, 20 clients", roomAllowed, roomPods), "0", "", fmt.Sprint(roomAllowed-m.Room.Passed), "8")
	row(fmt.Sprintf("%d clients at once, %d may pass", crowdPods, crowdAllowed), "all answered, no 5xx", "",
		fmt.Sprintf("%d passed, %d refused, %d 5xx, %d other", m.Crowd.Passed, m.Crowd.Refused, m.Crowd.Broken, m.Crowd.Others), "half answered 500")
	row("charges left behind", "0", "", fmt.Sprint(m.Left), "88 of 600")
	row("connections that the webhooks accepted, 100 clients", "", "", fmt.Sprint(m.Handshakes), "")
	s.WriteString("\nCPU a delete, 20 clients:\n\n| part | bare | unguarded | under a budget |\n|---|---|---|---|\n")
	for _, part := range parts(bare.CPU, unguarded.CPU, guarded.CPU) {
		row(part, bare.spent(part), unguarded.spent(part), guarded.spent(part))
	}
	return s.String()
}
