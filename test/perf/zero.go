package perf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// fromZero are the measurements of TestFromZero.
type fromZero struct {
	Machine string
	Starts  []coldStart
}

// coldStart is a release of one pod that begins while the functions are at zero.
type coldStart struct {
	// Ready is from the beginning of the release to the Ready pod.
	Ready time.Duration
	// Batch, Pre and Post are from the Ready pod to the creation of its ChangePod and to its stored verdicts.
	Batch, Pre, Post time.Duration
	// Functions are from the beginning of the release to the first Ready pod of each function.
	Functions map[string]time.Duration
}

// maxColdStart is the goal for the median delay of a verdict, in seconds.
const maxColdStart = 2

// functionLabel is the label of the pods of a function.
const functionLabel = "serving.knative.dev/service"

// readyFunctions has the time at which a watch first showed a Ready pod of each function.
type readyFunctions struct {
	mu    sync.Mutex
	first map[string]time.Time
}

func (r *readyFunctions) see(_ watch.EventType, p *corev1.Pod, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if function := p.Labels[functionLabel]; workload.PodReady(p) && r.first[function].IsZero() {
		r.first[function] = at
	}
}

func (r *readyFunctions) times() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.first)
}

// newColdStart takes the steps of the pod and the times of the first Ready pods of functions.
func newColdStart(began time.Time, p judgedPod, functions map[string]time.Time) coldStart {
	c := coldStart{
		Ready: p.Ready.Sub(began), Batch: p.Batch.Sub(p.Ready), Pre: p.Pre.Sub(p.Ready), Post: p.Post.Sub(p.Ready),
		Functions: map[string]time.Duration{},
	}
	for function, at := range functions {
		c.Functions[function] = at.Sub(began)
	}
	return c
}

// median returns the median of one part of the starts.
func (m fromZero) median(of func(coldStart) time.Duration) time.Duration {
	var all []time.Duration
	for _, c := range m.Starts {
		all = append(all, of(c))
	}
	return quantile(all, 0.5)
}

func (c coldStart) post() time.Duration { return c.Post }

// markdown renders the figures.
func (m fromZero) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s Each of %d releases of one simulated pod begins when no function has a pod, except callback, which always runs. The server passes "+
		"every check immediately. The times are those of watches.\n\n", m.Machine, len(m.Starts))
	s.WriteString("| measure | median | each |\n|---|---|---|\n")
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
	row := func(measure string, of func(coldStart) time.Duration) {
		var each []string
		for _, c := range m.Starts {
			each = append(each, seconds(of(c)))
		}
		s.WriteString("| " + measure + " | " + seconds(m.median(of)) + " | " + strings.Join(each, ", ") + " |\n")
	}
	row("from the Ready pod to the stored POST verdict", coldStart.post)
	row("... to its ChangePod", func(c coldStart) time.Duration { return c.Batch })
	row("... to the stored PRE verdict", func(c coldStart) time.Duration { return c.Pre })
	row("from the beginning of the release to the Ready pod", func(c coldStart) time.Duration { return c.Ready })
	functions := map[string]bool{}
	for _, c := range m.Starts {
		for function := range c.Functions {
			functions[function] = true
		}
	}
	for _, function := range slices.Sorted(maps.Keys(functions)) {
		row("... to the first Ready pod of function "+function, func(c coldStart) time.Duration { return c.Functions[function] })
	}
	return s.String()
}

// figures returns the figure with a goal.
func (m fromZero) figures() []figure {
	return []figure{{
		Work: "a release while the functions are at zero", Measure: "from the Ready pod to the stored verdict, median",
		Value: m.median(coldStart.post).Seconds(), Unit: "s", Goal: new(atMost(maxColdStart)),
	}}
}
