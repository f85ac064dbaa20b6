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
// Rolling, CPU, Machine and RSS are set.
type rollout struct {
	Took time.Duration
	// AfterReady is the time from the last Ready pod (to the second) to Success,
	// AfterVerdict the time from the server's last verdict.
	AfterReady, AfterVerdict time.Duration
	// Labeled is the time from the last Ready pod until all pods have the label
	// operate-finished. Judging does not wait for it, but its requests count.
	Labeled  time.Duration
	Requests map[call]requests
	// Bytes is the total size of the requests that wrote ChangePods and
	// ChangeWorkloads.
	Bytes int64
	// Rolling is the CPU time of each component until the rollout was complete, CPU
	// that until Success.
	Rolling, CPU map[string]time.Duration
	// Machine is the CPU time of the whole machine until all is done, without that of the
	// idle machine: the rollout, and of a judged one also Success and the labels.
	Machine time.Duration
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
	Machine               string
	Pods, Budgets, Grants int
	// RSS is the memory of the largest process in bytes, and Largest its component.
	RSS     int64
	Largest string
	// CPU is the CPU time of all components in one minute.
	CPU time.Duration
	// Each are the memory of the largest process of each component, and its CPU time in that minute.
	Each map[string]usage
	// Writes is the number of writes of all components of Breakwater in that minute.
	Writes int
}

// measure computes the measurements from the usages before and after a minute.
func (m *idle) measure(before, after map[string]usage) {
	m.Each = map[string]usage{}
	for component, used := range spent(before, after) {
		rss := after[component].RSS
		m.Each[component] = usage{CPU: used, RSS: rss}
		m.CPU += used
		if rss > m.RSS {
			m.RSS, m.Largest = rss, component
		}
	}
}

// pace returns the duration of a judged rollout divided by the mean duration of
// the bare rollouts before and after it.
func pace(r, before, after rollout) float64 {
	return 2 * r.Took.Seconds() / (before.Took + after.Took).Seconds()
}

// onTop returns the CPU time of the whole machine that a judged rollout used more
// than the mean of the bare ones before and after it, and the same as a multiple of that mean.
func onTop(r, before, after rollout) (more time.Duration, multiple float64) {
	bare := (before.Machine + after.Machine) / 2
	return r.Machine - bare, (r.Machine - bare).Seconds() / bare.Seconds()
}

func (r rollout) total() (n requests) {
	for _, w := range r.Requests {
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

// figures returns those of the releases.
func (m releases) figures() []figure {
	n := float64(m.Pods)
	var out []figure
	add := func(work, measure string, value float64, unit string, g *goal) {
		out = append(out, figure{Work: work, Measure: measure, Value: value, Unit: unit, Goal: g})
	}
	for _, x := range []struct {
		mode, work                        string
		r, before, after                  rollout
		cpu, pace, writes, reads, success *goal
	}{
		{oneByOne, "a release one by one", m.Single, m.Bare[1], m.Bare[2], new(atMost(1.5)), new(atMost(1.2)), new(atMost(4)), new(atMost(1)), new(atMost(25))},
		{inBatches, "a release in batches of 10 %", m.Batched, m.Bare[0], m.Bare[1], new(atMost(0.1)), new(atMost(1.15)), nil, nil, nil},
	} {
		more, multiple := onTop(x.r, x.before, x.after)
		total := x.r.total()
		add(x.work, x.mode+measureCPUOnTop, multiple, "× bare", x.cpu)
		add(x.work, x.mode+measureCPUPerPod, more.Seconds()*1000/n, "ms", nil)
		add(x.work, x.mode+measureWrites, float64(total.Writes)/n, "", x.writes)
		add(x.work, x.mode+measureReads, float64(total.Reads)/n, "", x.reads)
		add(x.work, x.mode+measureBytes, float64(x.r.Bytes)/n, "bytes", nil)
		add(x.work, x.mode+"rollout", pace(x.r, x.before, x.after), "× bare", x.pace)
		add(x.work, x.mode+"Success after the last pod is Ready", x.r.AfterReady.Seconds(), "s", x.success)
		add(x.work, x.mode+"all pods labeled after the last is Ready", x.r.Labeled.Seconds(), "s", new(atMost(10)))
	}
	return out
}

// markdown renders the measurements of the releases.
func (m releases) markdown() string {
	var s strings.Builder
	n := float64(m.Pods)
	single, batched := m.Single, m.Batched
	mean := func(of func(rollout) time.Duration) time.Duration {
		return (of(m.Bare[0]) + of(m.Bare[1]) + of(m.Bare[2])) / 3
	}
	fmt.Fprintf(&s, "%s A release of %d simulated pods with a surge of 25 %%; the server passes every check immediately. "+
		"A bare rollout is in a namespace that is not opted in. Each release is compared with the bare rollouts before and after it. The CPU of the idle machine is subtracted. "+
		"The ChangePods of a release are deleted after the next one began: the release in batches follows one of which they are few, and the deletion of the others is not measured.\n\n", m.Machine, m.Pods)
	s.WriteString("| measure | bare | Breakwater, one by one | Breakwater, 10 % | AlterShield Operator, 500 pods, one by one |\n|---|---|---|---|---|\n")
	row := func(cells ...string) { s.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	each := func(r requests, of func(requests) int) string { return fmt.Sprintf("%.2f", float64(of(r))/n) }
	writes := func(r requests) int { return r.Writes }
	rejected := func(r requests) int { return r.Rejected }
	events := func(r requests) int { return r.Events }
	reads := func(r requests) int { return r.Reads }
	all := func(r requests) int { return r.Writes + r.Events + r.Reads }
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	milli := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000/n) }
	more := func(r, before, after rollout) string {
		d, multiple := onTop(r, before, after)
		return fmt.Sprintf("%s more, %.2f ×", milli(d), multiple)
	}
	row("CPU of the whole machine per pod", milli(mean(func(r rollout) time.Duration { return r.Machine })),
		more(single, m.Bare[1], m.Bare[2]), more(batched, m.Bare[0], m.Bare[1]), "")
	row("CPU of Breakwater's processes per pod", "", milli(single.cpu(ours()...)), milli(batched.cpu(ours()...)), "77 ms")
	row("API writes per pod, without Events", "", each(single.total(), writes), each(batched.total(), writes), "10.5")
	row("rejected writes (mostly conflicts) per pod", "", each(single.total(), rejected), each(batched.total(), rejected), "")
	row("Events per pod", "", each(single.total(), events), each(batched.total(), events), "")
	row("API reads per pod", "", each(single.total(), reads), each(batched.total(), reads), "")
	row("bytes written to ChangePods and ChangeWorkloads per pod", "", fmt.Sprint(single.Bytes/int64(m.Pods)), fmt.Sprint(batched.Bytes/int64(m.Pods)), "")
	row("rollout", seconds(mean(func(r rollout) time.Duration { return r.Took })),
		fmt.Sprintf("%s, %.2f ×", seconds(single.Took), pace(single, m.Bare[1], m.Bare[2])),
		fmt.Sprintf("%s, %.2f ×", seconds(batched.Took), pace(batched, m.Bare[0], m.Bare[1])), "1.36 ×")
	row("Success after the last pod was Ready", "", seconds(single.AfterReady), seconds(batched.AfterReady), "128 s (47 s without its limit of 20 requests/s)")
	row("all pods labeled after the last pod was Ready", "", seconds(single.Labeled), seconds(batched.Labeled), "")
	row("Success after the last verdict", "", seconds(single.AfterVerdict), seconds(batched.AfterVerdict), "")
	row("memory of the larger of two controllers", "", fmt.Sprintf("%d MiB", single.RSS/mib), fmt.Sprintf("%d MiB", batched.RSS/mib), "")
	s.WriteString("\nRequests per pod, by binary and kind:\n\n| binary | request | one by one | rejected | 10 % | rejected |\n|---|---|---|---|---|---|\n")
	for _, c := range calls(single.Requests, batched.Requests) {
		a, b := single.Requests[c], batched.Requests[c]
		row(c.Binary, c.Verb+" "+c.Resource, each(a, all), each(a, rejected), each(b, all), each(b, rejected))
	}
	s.WriteString("\nCPU seconds, from the beginning of the rollout until it is complete, and until Success:\n\n" +
		"| component | bare, rollout | one by one, rollout | 10 %, rollout | one by one, Success | 10 %, Success |\n|---|---|---|---|---|---|\n")
	columns := []map[string]time.Duration{m.Bare[1].Rolling, single.Rolling, batched.Rolling, single.CPU, batched.CPU}
	for _, component := range components(columns...) {
		cells := []string{component}
		for _, c := range columns {
			cells = append(cells, fmt.Sprintf("%.1f", c[component].Seconds()))
		}
		row(cells...)
	}
	return s.String()
}

// figures returns those of the idle measurement.
func (m idle) figures() []figure {
	return []figure{
		{"an idle cluster", measureIdleMemory, float64(m.RSS) / mib, "MiB", new(atMost(100))},
		{"an idle cluster", measureIdleCPU, m.CPU.Seconds(), "s", new(atMost(0.5))},
		{"an idle cluster", measureIdleWrites, float64(m.Writes), "", new(atMost(150))},
	}
}

// markdown renders the idle measurement.
func (m idle) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %d pods run in ten opted-in namespaces, ten in each Deployment, and nothing happens. %d budgets guard them, one for each Deployment. "+
		"%d pods have a grant: the simulated kubelets run no init containers, so the benchmark sent their requests to the permission centre. "+
		"The processes have settled: for 150 s none has returned memory to the system. CPU and writes are those of the following minute.\n\n",
		m.Machine, m.Pods, m.Budgets, m.Grants)
	s.WriteString("| measure | Breakwater | AlterShield Operator, 5000 pods |\n|---|---|---|\n")
	fmt.Fprintf(&s, "| memory of the largest process, %s | %d MiB | 162 MiB |\n", m.Largest, m.RSS/mib)
	fmt.Fprintf(&s, "| CPU per minute, all processes | %.1f s | 3.4 s |\n", m.CPU.Seconds())
	fmt.Fprintf(&s, "| API writes per minute | %d | |\n", m.Writes)
	s.WriteString("\n| component | memory of its largest process | CPU per minute, all its processes |\n|---|---|---|\n")
	for _, component := range slices.SortedFunc(maps.Keys(m.Each), func(x, y string) int {
		return cmp.Or(cmp.Compare(m.Each[y].RSS, m.Each[x].RSS), cmp.Compare(x, y))
	}) {
		fmt.Fprintf(&s, "| %s | %d MiB | %.2f s |\n", component, m.Each[component].RSS/mib, m.Each[component].CPU.Seconds())
	}
	return s.String()
}

// calls returns the kinds of request in a or b, the most frequent first.
func calls(a, b map[call]requests) []call {
	all := maps.Clone(a)
	for c, n := range b {
		all[c] = all[c].plus(n)
	}
	return slices.SortedFunc(maps.Keys(all), func(x, y call) int {
		size := func(c call) int { return all[c].Writes + all[c].Events + all[c].Rejected + all[c].Reads }
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
