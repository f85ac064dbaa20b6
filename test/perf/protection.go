package perf

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// protection are the measurements of TestProtection.
type protection struct {
	Machine string
	// Pods is the number of pods of a run.
	Pods int
	// Bare runs have no webhook and no policy of Breakwater in the cluster,
	// NoBudget runs are in a namespace without a budget, Budget runs under a
	// budget that allows all deletions. Each has 20 clients.
	Bare, NoBudget, Budget []*deletions
	// Bare100 and Budget100 have 100 clients.
	Bare100, Budget100 *deletions
	// BareAtRate and BudgetAtRate have a fixed rate (deletionRate).
	BareAtRate, BudgetAtRate *deletions
	// Writes20 and Writes100 are the webhook's writes of the budget's status.
	Writes20, Writes100 requests
	// Connections is the number of connections that the webhooks accepted during
	// Budget100, including probes of the kubelet.
	Connections int
	// WithinBudget are 300 deletions of 400 pods with 20 clients, all of which
	// the budget allows; OverBudget are 600 concurrent deletions of which it
	// allows 300.
	WithinBudget, OverBudget *deletions
	// Charges is the number of charges that remain after all runs.
	Charges int
}

const (
	withinPods, withinAllowed = 400, 300
	overPods, overAllowed     = 600, 300
	deletionRate              = 300
)

// cpuOnTop returns the CPU of the whole machine for a deletion under a budget, on top of
// a bare one, as a multiple of that of a bare one. It is the median of the rounds, because
// other work of the cluster falls into some of them.
func (m protection) cpuOnTop() float64 {
	var all []float64
	for i, d := range m.Budget {
		bare := m.Bare[i].CPU[machineComponent].Seconds() / float64(m.Bare[i].Allowed)
		all = append(all, d.CPU[machineComponent].Seconds()/float64(d.Allowed)/bare-1)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// figures returns those of deletions.
func (m protection) figures() []figure {
	bare, budget := median(m.Bare), median(m.Budget)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	return []figure{
		{"a deletion under a budget", "20 clients: " + measureCPUOnTop, m.cpuOnTop(), "× bare", new(atMost(0.5))},
		{"a deletion under a budget", "20 clients: deletions per second", budget.rate() / bare.rate(), "× bare", new(atLeast(0.66))},
		{"a deletion under a budget", "100 clients: p99", ms(m.Budget100.quantile(0.99)) / ms(m.Bare100.quantile(0.99)), "× bare", new(atMost(1.4))},
		{"a deletion under a budget", fmt.Sprintf("%d per second that wait for nobody: p99 more than bare", deletionRate),
			ms(m.BudgetAtRate.quantile(0.99) - m.BareAtRate.quantile(0.99)), "ms", new(atMost(40))},
		{"a deletion under a budget", "false denials", float64(withinAllowed - m.WithinBudget.Allowed), "", new(atMost(0))},
		{"a deletion under a budget", "deletions beyond the budget", float64(max(0, m.OverBudget.Allowed-overAllowed)), "", new(atMost(0))},
	}
}

// markdown renders the measurements of deletions.
func (m protection) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s A run deletes %d simulated pods; comparisons with 20 clients are the median of %d runs. Each client has its own connection "+
		"and is not in the group system:masters, so API Priority and Fairness applies to it. "+
		"CPU is counted until the last pod is removed and its budget is computed; that of the idle machine is subtracted from the machine's. "+
		"Bare runs have no webhook or policy of Breakwater; they alternate with the others on the same cluster.\n\n", m.Machine, m.Pods, len(m.Bare))
	s.WriteString("| measure | bare | Breakwater | OpenKruise 1.8 |\n|---|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	milli := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }
	bare, noBudget, budget := median(m.Bare), median(m.NoBudget), median(m.Budget)
	pace := func(d, bare *deletions) string {
		return fmt.Sprintf("%.0f/s, %.2f ×", d.rate(), d.rate()/bare.rate())
	}
	rate := func(d *deletions) string { return fmt.Sprintf("%.0f/s", d.rate()) }
	perDelete := func(w requests, d int) string {
		return fmt.Sprintf("%.3f, %.3f conflicts", float64(w.Writes)/float64(d), float64(w.Rejected)/float64(d))
	}
	row("CPU of the whole machine per deletion, 20 clients", bare.spent(machineComponent), fmt.Sprintf("%s, %.2f × bare on top", budget.spent(machineComponent), m.cpuOnTop()), "")
	row("deletions without a budget, 20 clients", rate(bare), pace(noBudget, bare), "0.88 ×")
	row("deletions that one budget allows, 20 clients", rate(bare), pace(budget, bare), "0.035 × (0.16 × without its client's limits)")
	row("the same, 100 clients", rate(m.Bare100), pace(m.Budget100, m.Bare100), "")
	row("status writes per allowed deletion, 20 clients", "", perDelete(m.Writes20, m.Pods*len(m.Budget)), "1.05")
	row("the same, 100 clients", "", perDelete(m.Writes100, m.Pods), "1.0 and conflicts")
	row("p99, 100 clients", milli(m.Bare100.quantile(0.99)),
		fmt.Sprintf("%s, %s more", milli(m.Budget100.quantile(0.99)), milli(m.Budget100.quantile(0.99)-m.Bare100.quantile(0.99))), "over 1 s more")
	row("p50, 100 clients", milli(m.Bare100.quantile(0.5)), milli(m.Budget100.quantile(0.5)), "")
	row(fmt.Sprintf("p99 at a fixed rate of %d deletions/s (open loop)", deletionRate), milli(m.BareAtRate.quantile(0.99)), milli(m.BudgetAtRate.quantile(0.99)), "not reached")
	row("p50 at the same rate", milli(m.BareAtRate.quantile(0.5)), milli(m.BudgetAtRate.quantile(0.5)), "")
	row(fmt.Sprintf("false denials, %d deletions of %d pods, 20 clients", withinAllowed, withinPods), "", fmt.Sprint(withinAllowed-m.WithinBudget.Allowed), "8")
	row(fmt.Sprintf("%d concurrent clients, the budget allows %d", overPods, overAllowed), "",
		fmt.Sprintf("%d allowed, %d denied, %d 5xx, %d other", m.OverBudget.Allowed, m.OverBudget.Denied, m.OverBudget.Failed, m.OverBudget.Others), "500 for half of them")
	row("remaining charges", "", fmt.Sprint(m.Charges), "88 of 600")
	row("connections that the webhooks accepted, 100 clients", "", fmt.Sprint(m.Connections), "")
	s.WriteString("\nCPU per deletion, 20 clients:\n\n| component | bare | without a budget | with a budget |\n|---|---|---|---|\n")
	for _, component := range components(bare.CPU, noBudget.CPU, budget.CPU) {
		row(component, bare.spent(component), noBudget.spent(component), budget.spent(component))
	}
	return s.String()
}
