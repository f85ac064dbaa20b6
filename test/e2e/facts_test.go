//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const (
	// minFacts is the number of facts that are written while the reconciler derives
	// status, and maxFacts the number after which the test fails.
	minFacts, maxFacts = 100, 5000
	// minDerivedWrites is the number of writes of the reconciler between them. Fewer
	// prove little about a race.
	minDerivedWrites = 10
)

// concurrentFact is written between a read and a write of the reconciler, and
// is kept. Each patch also changes a derived field, so that the reconciler
// writes each time. The watch shows each state: no write may restore an older
// fact.
func concurrentFact(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	p := n.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone)
	events, err := n.change.ChangePods(n.name).Watch(t.Context(), metav1.ListOptions{ResourceVersion: p.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	seen := factHistory{last: -1}
	written := 0
	for written < minFacts || seen.derived < minDerivedWrites {
		if written == maxFacts {
			t.Fatalf("the reconciler wrote %d times between %d facts, want at least %d", seen.derived, written, minDerivedWrites)
		}
		n.writeFact(t, p, written)
		written++
		for pending := true; pending; {
			select {
			case event := <-events.ResultChan():
				seen.add(t, event)
			default:
				pending = false
			}
		}
	}
	deadline := time.NewTimer(shortTimeout)
	defer deadline.Stop()
	for seen.last < written-1 || !seen.isDerived {
		select {
		case event := <-events.ResultChan():
			seen.add(t, event)
		case <-deadline.C:
			t.Fatalf("the last state has fact %d after %d writes of the reconciler; want fact %d and message PostFinish", seen.last, seen.derived, written-1)
		}
	}
	t.Logf("the reconciler wrote %d times between %d facts", seen.derived, written)
}

// factHistory records the states of a ChangePod that a watch has returned.
type factHistory struct {
	// last is the number of the last fact.
	last int
	// isDerived says that the reconciler wrote the last state; derived counts such
	// states.
	isDerived bool
	derived   int
}

// add fails the test if the event restores an older fact.
func (h *factHistory) add(t *testing.T, event watch.Event) {
	t.Helper()
	now, ok := event.Object.(*v1alpha1.ChangePod)
	if !ok {
		t.Fatalf("the watch returned %T", event.Object)
	}
	if h.isDerived = now.Status.Message == string(v1alpha1.BatchPostFinish); h.isDerived {
		h.derived++
	}
	fact, err := factOf(now)
	if err != nil {
		t.Fatal(err)
	}
	if fact < h.last {
		t.Fatalf("a write restored fact %d after fact %d", fact, h.last)
	}
	h.last = fact
}

// writeFact writes the fields that function verdict or a person writes, and a
// message that the reconciler has to derive again.
func (n *namespace) writeFact(t *testing.T, p *v1alpha1.ChangePod, i int) {
	t.Helper()
	result := p.Spec.PodInfos[0]
	result.Verdict, result.Message = "pass", fmt.Sprint(i)
	raw, err := json.Marshal(map[string]any{"status": map[string]any{
		"podResults": []v1alpha1.PodSummary{result}, "message": fmt.Sprint("spoilt ", i),
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.change.ChangePods(n.name).Patch(t.Context(), p.Name, types.MergePatchType, raw, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// factOf returns the number of the fact; -1 before the first.
func factOf(p *v1alpha1.ChangePod) (int, error) {
	if len(p.Status.PodResults) == 0 {
		return -1, nil
	}
	var fact int
	_, err := fmt.Sscan(p.Status.PodResults[0].Message, &fact)
	return fact, err
}
