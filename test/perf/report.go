package perf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// rollout has the measurements of one rollout. Without judging, only Took,
// Rolling, CPU and RSS are set.
type rollout struct {
	Took time.Duration
	// AfterReady is the time from the last Ready pod (to the second) to Success,
	// AfterVerdict the time from the server's last verdict.
	AfterReady, AfterVerdict time.Duration
	// Labeled is the time from the last Ready pod until all pods have the label
	// operate-finished. Judging does not wait for it, but its writes count.
	Labeled time.Duration
	Writes  map[call]writes
	// Bytes is the total size of the requests that wrote ChangePods and
	// ChangeWorkloads.
	Bytes int64
	// Rolling is the CPU time of each component until the rollout was complete, CPU
	// that until Success.
	Rolling, CPU map[string]time.Duration
	// RSS is the memory of the larger controller at the end, in bytes.
	RSS int64
}

// releases are the measurements of TestReleases: a bare rollout before, between
// and after the judged ones.
type releases struct {
	Machine string
	Pods    int
	Bare    [3]rollout
	Single  rollout
	Batched rollout
}

// idle are the measurements of TestIdle.
type idle struct {
	Machine string
	Pods    int
	// RSS is the memory of the larger controller in bytes, CPU its CPU time in
	// one minute.
	RSS int64
	CPU time.Duration
	// Writes is the number of writes of all components of Breakwater in that minute.
	Writes int
}

// pace returns the duration of a judged rollout divided by the mean duration of
// the bare rollouts before and after it.
func pace(r, before, after rollout) float64 {
	return 2 * r.Took.Seconds() / (before.Took + after.Took).Seconds()
}

func (r rollout) total() (n writes) {
	for _, w := range r.Writes {
		n = n.plus(w)
	}
	return n
}

// ours returns the components of Breakwater that take part in a release.
func ours() []string {
	return []string{"controller", "webhook", "submit", "verdict", "report", "callback", "deadletter"}
}

func (r rollout) cpu(names ...string) (sum time.Duration) {
	for _, p := range names {
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
	fmt.Fprintf(&s, "%s A release of %d simulated pods with a surge of 25 %%; the server passes every check immediately. "+
		"A bare rollout is in a namespace that is not opted in. Each release is compared with the bare rollouts before and after it.\n\n", m.Machine, m.Pods)
	s.WriteString("| measure | target | bare | Breakwater, one by one | Breakwater, 10 % | AlterShield Operator, 500 pods, one by one |\n|---|---|---|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	each := func(w writes, of func(writes) int) string { return fmt.Sprintf("%.2f", float64(of(w))/n) }
	objects := func(w writes) int { return w.Objects }
	rejected := func(w writes) int { return w.Rejected }
	events := func(w writes) int { return w.Events }
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	milli := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000/n) }
	row("API writes per pod, without Events", "8; 1.3", "", each(single.total(), objects), each(batched.total(), objects), "10.5")
	row("rejected writes (mostly conflicts) per pod", "", "", each(single.total(), rejected), each(batched.total(), rejected), "")
	row("Events per pod", "", "", each(single.total(), events), each(batched.total(), events), "")
	row("bytes written to ChangePods and ChangeWorkloads per pod", "", "", fmt.Sprint(single.Bytes/int64(m.Pods)), fmt.Sprint(batched.Bytes/int64(m.Pods)), "")
	row("rollout", "1.5; 1.10 × bare", seconds(bare),
		fmt.Sprintf("%s, %.2f ×", seconds(single.Took), pace(single, m.Bare[0], m.Bare[1])),
		fmt.Sprintf("%s, %.2f ×", seconds(batched.Took), pace(batched, m.Bare[1], m.Bare[2])), "1.36 ×")
	row("Success after the last pod was Ready", "", "", seconds(single.AfterReady), seconds(batched.AfterReady), "128 s (47 s without its limit of 20 requests/s)")
	row("all pods labeled after the last pod was Ready", "", "", seconds(single.Labeled), seconds(batched.Labeled), "")
	row("Success after the last verdict", "3 s", "", seconds(single.AfterVerdict), seconds(batched.AfterVerdict), "")
	row("CPU of the controller per pod", "", "", milli(single.cpu("controller")), milli(batched.cpu("controller")), "77 ms")
	row("CPU of all of Breakwater per pod", "", "", milli(single.cpu(ours()...)), milli(batched.cpu(ours()...)), "77 ms")
	row("memory of the larger of two controllers", "", "", fmt.Sprintf("%d MiB", single.RSS/mib), fmt.Sprintf("%d MiB", batched.RSS/mib), "")
	s.WriteString("\nWrites per pod, by binary and kind of write:\n\n| binary | write | one by one | rejected | 10 % | rejected |\n|---|---|---|---|---|---|\n")
	for _, c := range calls(single.Writes, batched.Writes) {
		a, b := single.Writes[c], batched.Writes[c]
		row(c.Binary, c.Verb+" "+c.Resource, each(a, func(w writes) int { return w.Objects + w.Events }), each(a, rejected),
			each(b, func(w writes) int { return w.Objects + w.Events }), each(b, rejected))
	}
	s.WriteString("\nCPU seconds, from the beginning of the rollout until it is complete, and until Success:\n\n" +
		"| component | bare, rollout | one by one, rollout | 10 %, rollout | one by one, Success | 10 %, Success |\n|---|---|---|---|---|---|\n")
	columns := []map[string]time.Duration{m.Bare[1].Rolling, single.Rolling, batched.Rolling, single.CPU, batched.CPU}
	for _, component := range append([]string{allComponents}, components(columns...)...) {
		cells := []string{component}
		for _, c := range columns {
			cells = append(cells, fmt.Sprintf("%.1f", cpuOf(c, component).Seconds()))
		}
		row(cells...)
	}
	return s.String()
}

// allComponents is the row with the sum of all components.
const allComponents = "all"

func cpuOf(spent map[string]time.Duration, component string) (sum time.Duration) {
	if component != allComponents {
		return spent[component]
	}
	for _, d := range spent {
		sum += d
	}
	return sum
}

// markdown renders the figures of the idle measurement.
func (m idle) markdown() string {
	return fmt.Sprintf("%s %d pods run in opted-in namespaces without a release.\n\n", m.Machine, m.Pods) +
		"| measure | target | Breakwater | AlterShield Operator, 5000 pods |\n|---|---|---|---|\n" +
		fmt.Sprintf("| memory of the larger of two controllers | 150 MiB | %d MiB | 162 MiB |\n", m.RSS/mib) +
		fmt.Sprintf("| its CPU per minute | | %.1f s | 3.4 s |\n", m.CPU.Seconds()) +
		fmt.Sprintf("| API writes per minute, mostly of Leases | | %d | |\n", m.Writes)
}

// calls returns the kinds of write in a or b, the most frequent first.
func calls(a, b map[call]writes) []call {
	all := maps.Clone(a)
	for c, n := range b {
		all[c] = all[c].plus(n)
	}
	return slices.SortedFunc(maps.Keys(all), func(x, y call) int {
		size := func(c call) int { return all[c].Objects + all[c].Events + all[c].Rejected }
		return cmp.Or(size(y)-size(x), cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)))
	})
}

// components returns those that used at least 0.1 s of CPU, in descending order.
func components(all ...map[string]time.Duration) []string {
	most := map[string]time.Duration{}
	for _, m := range all {
		for component, d := range m {
			most[component] = max(most[component], d)
		}
	}
	maps.DeleteFunc(most, func(_ string, d time.Duration) bool { return d < 100*time.Millisecond })
	return slices.SortedFunc(maps.Keys(most), func(a, b string) int {
		return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b))
	})
}
