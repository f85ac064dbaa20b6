package perf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// rollOut has the measurements of one rollout. Those of judging are zero for a
// bare rollout.
type rollOut struct {
	Took time.Duration
	// AfterReady and AfterVerdict are how long Success came after the last pod
	// was Ready (which Kubernetes tells to the second) and after the server
	// sent its last verdict.
	AfterReady, AfterVerdict time.Duration
	// Labelled is how long after the last pod was Ready all of them carried the
	// label that they are finished. It is no part of judging, but its writes count.
	Labelled time.Duration
	Writes   map[call]writes
	// Bytes are those of the bodies that were written to our objects.
	Bytes int64
	// Rolling is the CPU of each part until the roll-out was complete, CPU until
	// Success.
	Rolling, CPU map[string]time.Duration
	// RSS is the larger controller's memory at the end, in bytes.
	RSS int64
}

// releases is what the first half of the benchmark measures: a bare roll-out
// before, between and after the guarded ones.
type releases struct {
	Machine string
	Pods    int
	Bare    [3]rollOut
	Single  rollOut
	Batched rollOut
}

// idle is what the second half measures.
type idle struct {
	Machine string
	Pods    int
	// RSS is the larger controller's memory in bytes, CPU what it spends in a minute.
	RSS int64
	CPU time.Duration
	// Writes of all of Breakwater in that minute: Leases.
	Writes int
}

// pace is how long a guarded roll-out takes against the bare ones beside it.
func pace(r, before, after rollOut) float64 {
	return 2 * r.Took.Seconds() / (before.Took + after.Took).Seconds()
}

func (r rollOut) total() (n writes) {
	for _, w := range r.Writes {
		n = n.plus(w)
	}
	return n
}

// ours are the parts that Breakwater is made of.
func ours() []string {
	return []string{"controller", "webhook", "submit", "verdict", "report", "callback", "deadletter"}
}

func (r rollOut) cpu(parts ...string) (sum time.Duration) {
	for _, p := range parts {
		sum += r.CPU[p]
	}
	return sum
}

const mib = 1 << 20

// markdown renders the figures of the releases.
func (m releases) markdown() string {
	var s strings.Builder
	n := float64(m.Pods)
	single, batched, bare := m.Single, m.Batched, (m.Bare[0].Took+m.Bare[1].Took+m.Bare[2].Took)/3
	fmt.Fprintf(&s, "%s A release of %d simulated pods, surge 25 %%, a server that passes every check at once. "+
		"Roll-outs are compared with bare ones before and after them.\n\n", m.Machine, m.Pods)
	s.WriteString("| measure | target | bare | Breakwater, one by one | Breakwater, 10 % | the original, 500 pods, one by one |\n|---|---|---|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	each := func(w writes, of func(writes) int) string { return fmt.Sprintf("%.2f", float64(of(w))/n) }
	objects := func(w writes) int { return w.Objects }
	refused := func(w writes) int { return w.Refused }
	events := func(w writes) int { return w.Events }
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	milli := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000/n) }
	row("API writes a pod, Events apart", "8; 1.3", "", each(single.total(), objects), each(batched.total(), objects), "10.5")
	row("refused writes (conflicts) a pod", "", "", each(single.total(), refused), each(batched.total(), refused), "")
	row("Events a pod", "", "", each(single.total(), events), each(batched.total(), events), "")
	row("bytes written to our objects a pod", "", "", fmt.Sprint(single.Bytes/int64(m.Pods)), fmt.Sprint(batched.Bytes/int64(m.Pods)), "")
	row("roll-out", "1.5; 1.10 × bare", seconds(bare),
		fmt.Sprintf("%s, %.2f ×", seconds(single.Took), pace(single, m.Bare[0], m.Bare[1])),
		fmt.Sprintf("%s, %.2f ×", seconds(batched.Took), pace(batched, m.Bare[1], m.Bare[2])), "1.36 ×")
	row("Success after the last pod was Ready", "", "", seconds(single.AfterReady), seconds(batched.AfterReady), "128 s (47 s without its limit of 20 requests/s)")
	row("all labelled after the last pod was Ready", "", "", seconds(single.Labelled), seconds(batched.Labelled), "")
	row("Success after the last verdict", "3 s", "", seconds(single.AfterVerdict), seconds(batched.AfterVerdict), "")
	row("CPU of the controller a pod", "", "", milli(single.cpu("controller")), milli(batched.cpu("controller")), "77 ms")
	row("CPU of all of Breakwater a pod", "", "", milli(single.cpu(ours()...)), milli(batched.cpu(ours()...)), "77 ms")
	row("memory of the larger of two controllers", "", "", fmt.Sprintf("%d MiB", single.RSS/mib), fmt.Sprintf("%d MiB", batched.RSS/mib), "")
	s.WriteString("\nWrites a pod, by who and what:\n\n| binary | write | one by one | refused | 10 % | refused |\n|---|---|---|---|---|---|\n")
	for _, c := range calls(single.Writes, batched.Writes) {
		a, b := single.Writes[c], batched.Writes[c]
		row(c.Binary, c.Verb+" "+c.Resource, each(a, func(w writes) int { return w.Objects + w.Events }), each(a, refused),
			each(b, func(w writes) int { return w.Objects + w.Events }), each(b, refused))
	}
	s.WriteString("\nCPU seconds, from the beginning of the roll-out until it is complete, and until Success:\n\n" +
		"| part | bare, roll-out | one by one, roll-out | 10 %, roll-out | one by one, Success | 10 %, Success |\n|---|---|---|---|---|---|\n")
	columns := []map[string]time.Duration{m.Bare[1].Rolling, single.Rolling, batched.Rolling, single.CPU, batched.CPU}
	for _, part := range append([]string{everything}, parts(columns...)...) {
		cells := []string{part}
		for _, c := range columns {
			cells = append(cells, fmt.Sprintf("%.1f", cpuOf(c, part).Seconds()))
		}
		row(cells...)
	}
	return s.String()
}

// everything is the line that adds up all parts.
const everything = "all"

func cpuOf(spent map[string]time.Duration, part string) (sum time.Duration) {
	if part != everything {
		return spent[part]
	}
	for _, d := range spent {
		sum += d
	}
	return sum
}

// markdown renders the figures of the idle part.
func (m idle) markdown() string {
	return fmt.Sprintf("%s %d pods run in opted-in namespaces, and nothing is released.\n\n", m.Machine, m.Pods) +
		"| measure | target | Breakwater | the original, 5000 pods |\n|---|---|---|---|\n" +
		fmt.Sprintf("| memory of the larger of two controllers | 150 MiB | %d MiB | 162 MiB |\n", m.RSS/mib) +
		fmt.Sprintf("| its CPU a minute | | %.1f s | 3.4 s |\n", m.CPU.Seconds()) +
		fmt.Sprintf("| API writes a minute, mostly of Leases | | %d | |\n", m.Writes)
}

// calls returns the kinds of write of both, those with most writes first.
func calls(a, b map[call]writes) []call {
	all := maps.Clone(a)
	for c, n := range b {
		all[c] = all[c].plus(n)
	}
	return slices.SortedFunc(maps.Keys(all), func(x, y call) int {
		size := func(c call) int { return all[c].Objects + all[c].Events + all[c].Refused }
		return cmp.Or(size(y)-size(x), cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)))
	})
}

// parts returns the parts that spent at least a tenth of a second, the
// greediest first.
func parts(all ...map[string]time.Duration) []string {
	most := map[string]time.Duration{}
	for _, m := range all {
		for part, d := range m {
			most[part] = max(most[part], d)
		}
	}
	maps.DeleteFunc(most, func(_ string, d time.Duration) bool { return d < 100*time.Millisecond })
	return slices.SortedFunc(maps.Keys(most), func(a, b string) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b))
	})
}
