package perf

import (
	"strings"
	"testing"
	"time"
)

func TestTheTableOfConcurrentReleasesShowsBothRuns(t *testing.T) {
	atOnce, spread := concurrentRun{Releases: 2, CPU: 3 * time.Second}, concurrentRun{Releases: 2, Interval: time.Minute, CPU: time.Second}
	pod := func(delay int) judgedPod { return judgedPod{Ready: second(10), Post: second(10 + delay)} }
	atOnce.observe(second(8), []judgedPod{pod(1), pod(20), pod(3)}, []judgedRelease{{Success: second(40)}, {Success: second(30), Unjudged: 1}})
	// The watch of pods may be late.
	spread.observe(second(8), []judgedPod{pod(-1), pod(2), pod(1), pod(2)}, []judgedRelease{{Success: second(20)}, {Success: second(50)}})
	m := concurrent{Machine: "Here.", Each: 2, Runs: []concurrentRun{atOnce, spread}}
	want := `| measure | 2 releases, begun at once | 2 releases, begun over 2 minutes |
|---|---|---|
| judged pods | 3 of 4 | 4 of 4 |
| unjudged pods | 1 | 0 |
| until all releases are a Success | 32.0 s | 42.0 s |
| delay of a verdict, p50 | 3.0 s | 2.0 s |
| the same, p99 | 20.0 s | 2.0 s |
| CPU of the machine per pod | 750 ms | 250 ms |
`
	if got := m.markdown(); !strings.HasSuffix(got, "\n\n"+want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	goals, missed := 0, []string{}
	for _, x := range m.figures() {
		if x.Goal != nil {
			goals++
			if !x.Goal.met(x.Value) {
				missed = append(missed, x.Measure)
			}
		}
	}
	if got := strings.Join(missed, ", "); goals != 5 || got != "begun at once: judged pods, begun at once: unjudged pods" {
		t.Errorf("%d goals; missed: %s", goals, got)
	}
}
