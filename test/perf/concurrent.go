package perf

import (
	"fmt"
	"strings"
	"time"
)

// concurrent are the measurements of TestConcurrent.
type concurrent struct {
	Machine string
	// Each is the number of pods of each release.
	Each int
	Runs []concurrentRun
}

// concurrentRun is a number of releases that begin at an interval; 0 is at once.
type concurrentRun struct {
	Releases int
	Interval time.Duration
	// Judged is the number of pods with a POST verdict, Unjudged that of pods that passed without one.
	Judged, Unjudged int
	// Took is from the first beginning until all releases are a Success.
	Took time.Duration
	// Delays are the times from a Ready pod to its stored POST verdict.
	Delays []time.Duration
	// CPU is that of the whole machine, without that of the idle machine, until all releases are a Success.
	CPU time.Duration
}

// maxDelay is the goal for the delay of 99 % of the verdicts, in seconds, if releases do not begin at once.
const maxDelay = 10

// observe takes the results of the watches: the judged pods and the ended releases.
func (r *concurrentRun) observe(began time.Time, pods []judgedPod, releases []judgedRelease) {
	r.Judged = len(pods)
	for _, p := range pods {
		r.Delays = append(r.Delays, max(0, p.Post.Sub(p.Ready)))
	}
	for _, x := range releases {
		r.Unjudged += x.Unjudged
		r.Took = max(r.Took, x.Success.Sub(began))
	}
}

func (r concurrentRun) begin() string {
	if r.Interval == 0 {
		return "at once"
	}
	return fmt.Sprintf("over %g minutes", (time.Duration(r.Releases) * r.Interval).Minutes())
}

func (m concurrent) pods(r concurrentRun) int { return r.Releases * m.Each }

// cpuEach is the CPU time of the machine per pod, in milliseconds.
func (m concurrent) cpuEach(r concurrentRun) float64 {
	return r.CPU.Seconds() * 1000 / float64(m.pods(r))
}

// markdown renders the figures.
func (m concurrent) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s Each release has %d simulated pods, which are judged one by one; the server passes every check immediately. The delay of a "+
		"verdict is from the event of a watch that shows the pod Ready to the event that shows its POST verdict in its ChangePod. The CPU is that "+
		"of all processes, also of the rollouts and of the watches of the benchmark, without that of the idle machine.\n\n", m.Machine, m.Each)
	header, line := "| measure |", "|---|"
	for _, r := range m.Runs {
		header, line = header+fmt.Sprintf(" %d releases, begun %s |", r.Releases, r.begin()), line+"---|"
	}
	s.WriteString(header + "\n" + line + "\n")
	row := func(measure string, of func(concurrentRun) string) {
		s.WriteString("| " + measure + " |")
		for _, r := range m.Runs {
			s.WriteString(" " + of(r) + " |")
		}
		s.WriteString("\n")
	}
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	row("judged pods", func(r concurrentRun) string { return fmt.Sprintf("%d of %d", r.Judged, m.pods(r)) })
	row("unjudged pods", func(r concurrentRun) string { return fmt.Sprint(r.Unjudged) })
	row("until all releases are a Success", func(r concurrentRun) string { return seconds(r.Took) })
	row("delay of a verdict, p50", func(r concurrentRun) string { return seconds(quantile(r.Delays, 0.5)) })
	row("the same, p99", func(r concurrentRun) string { return seconds(quantile(r.Delays, 0.99)) })
	row("CPU of the machine per pod", func(r concurrentRun) string { return fmt.Sprintf("%.0f ms", m.cpuEach(r)) })
	return s.String()
}

// figures returns the figures of all runs.
func (m concurrent) figures() (all []figure) {
	for _, r := range m.Runs {
		work := fmt.Sprintf("%d releases of %d pods", r.Releases, m.Each)
		add := func(measure string, value float64, unit string, goal *goal) {
			all = append(all, figure{Work: work, Measure: "begun " + r.begin() + ": " + measure, Value: value, Unit: unit, Goal: goal})
		}
		var delay *goal
		if r.Interval > 0 {
			delay = new(atMost(maxDelay))
		}
		add("judged pods", float64(r.Judged), "", new(atLeast(float64(m.pods(r)))))
		add("unjudged pods", float64(r.Unjudged), "", new(atMost(0)))
		add("until all releases are a Success", r.Took.Seconds(), "s", nil)
		if len(r.Delays) > 0 {
			add("delay of a verdict, p50", quantile(r.Delays, 0.5).Seconds(), "s", nil)
			add("delay of a verdict, p99", quantile(r.Delays, 0.99).Seconds(), "s", delay)
		}
		add("CPU of the machine per pod", m.cpuEach(r), "ms", nil)
	}
	return all
}
