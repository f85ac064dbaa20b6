package budget

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// probeWorkers is how many budgets are probed concurrently. The API server may send
	// a dry run to a replica that does not answer, and then the probe waits for the
	// timeout of the webhook.
	probeWorkers = 8
	// probeLimit is how long the probe of one budget may take.
	probeLimit = 15 * time.Second
)

// run starts the goroutines that probe, until ctx ends. It calls enqueue after each
// probe.
func (g *guardingCheck) run(ctx context.Context, enqueue func(types.NamespacedName)) {
	context.AfterFunc(ctx, g.queue.ShutDown)
	for range probeWorkers {
		go func() {
			for g.probeNext(ctx, enqueue) {
			}
		}()
	}
}

// probeNext probes the next budget of the queue. It returns false after the end of
// the queue.
func (g *guardingCheck) probeNext(ctx context.Context, enqueue func(types.NamespacedName)) bool {
	key, ended := g.queue.Get()
	if ended {
		return false
	}
	defer g.queue.Done(key)
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if g.probe(ctx, key) {
		enqueue(key)
	}
	return true
}

// probe probes a budget and records the result. It returns false if no probe is due
// or the result is about an earlier generation, whose successor is in the queue.
func (g *guardingCheck) probe(ctx context.Context, key types.NamespacedName) bool {
	due := g.get(key)
	b := due.pending
	if b == nil {
		return false
	}
	answered, all, err := g.prober.Probe(ctx, b, due.condition.IsTrue())
	g.mu.Lock()
	defer g.mu.Unlock()
	s, exists := g.states[key]
	if !exists || s.uid != b.UID || s.generation != b.Generation {
		return false
	}
	s = evaluateProbe(s, answered, all, err, time.Now())
	s.pending = nil
	g.states[key] = s
	return true
}

func (g *guardingCheck) get(key types.NamespacedName) probeState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.states[key]
}
