package budget

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/internal/budget"
)

// The actions of this file join the steps that meet a certain fault: one after the
// other by chance they are rare.

// bounds are just before and after the time limits of the product.
var bounds = []time.Duration{
	budget.RepeatedTTL - 100*time.Millisecond, budget.RepeatedTTL + 100*time.Millisecond,
	requestTimeout/2 + time.Second, requestTimeout - 500*time.Millisecond,
	chargeTimeout + budget.RepeatedTTL - time.Second, chargeTimeout + budget.RepeatedTTL + time.Second,
}

func drawReplica(t *rapid.T, label string) int {
	return rapid.IntRange(0, webhookReplicas-1).Draw(t, label)
}

// deleteAtOnce admits a deletion, and mostly carries it out, while all other calls and
// requests wait.
func (m *budgetModel) deleteAtOnce(t *rapid.T) {
	p, evict := m.pod(t), rapid.Bool().Draw(t, "evict")
	m.decideAtOnce(&deletion{replica: drawReplica(t, "replica"), evict: evict}, p, rapid.Bool().Draw(t, "carry out"))
}

// decideAtOnce decides a request while all other calls and requests wait.
func (m *budgetModel) decideAtOnce(r *deletion, p *corev1.Pod, carryOut bool) {
	before := m.api.waiting()
	m.add(r, p)
	m.t.Logf("%s at replica %d at once, carried out: %v", r, r.replica, carryOut)
	for range 3 {
		m.settle()
		m.serveNew(before)
		if len(r.answer) == 0 {
			m.sleep(30 * time.Millisecond)
		}
	}
	for r.state == stateAsking && len(r.answer) > 0 {
		m.receive(r)
		if r.state == stateAllowed && carryOut {
			m.carryOut(r)
		}
		m.settle()
		m.observe()
	}
}

// interrupt loses the answer to a request between its calls. A request about the same
// pod may be decided before or meanwhile, and the number of available pods may change.
func (m *budgetModel) interrupt(t *rapid.T) {
	p, r, other := m.pod(t), &deletion{replica: drawReplica(t, "replica")}, &deletion{replica: drawReplica(t, "other replica")}
	when := rapid.SampledFrom([]string{"never", "before", "meanwhile", "at last"}).Draw(t, "other request")
	if when == "before" {
		m.decideAtOnce(other, p, false)
	}
	before := m.api.waiting()
	m.add(r, p)
	m.t.Logf("%s at replica %d, to be interrupted", r, r.replica)
	m.settle()
	f := rapid.SampledFrom([]fate{fateServed, fateServed, fateFailed, fateLost}).Draw(t, "fate")
	for i := range rapid.IntRange(0, 4).Draw(t, "calls") {
		if when == "meanwhile" && i == 1 {
			m.decideAtOnce(other, p, false)
		}
		if calls := m.newCalls(before); len(calls) > 0 {
			m.serve(calls[0], f)
			f = fateServed
		}
		m.sleep(60 * time.Millisecond) // the pause before another attempt
	}
	if when == "at last" {
		m.decideAtOnce(other, p, false)
	}
	if rapid.Bool().Draw(t, "crash") {
		m.changeReadiness(t)
	}
	if rapid.Bool().Draw(t, "compute") {
		m.compute()
	}
	if r.state == stateAsking {
		m.t.Logf("%s: the answer is lost", r)
		r.end()
	}
	m.sleep(60 * time.Millisecond)
	m.serveNew(before)
	m.sleep(minInterval)
	m.compute()
}

// repeat admits a request about a pod, ends it or keeps it open, and admits another
// one after a pause.
func (m *budgetModel) repeat(t *rapid.T) {
	p, replica := m.pod(t), drawReplica(t, "replica")
	r := &deletion{replica: replica}
	m.decideAtOnce(r, p, false)
	if r.state == stateAllowed && rapid.Bool().Draw(t, "deny for another reason") {
		m.t.Logf("%s: denied for another reason", r)
		r.end()
	}
	m.compute()
	m.sleep(rapid.SampledFrom(bounds).Draw(t, "pause"))
	m.compute()
	if now, exists := m.api.pods[p.Name]; exists && now.UID == p.UID && rapid.Bool().Draw(t, "again") {
		m.decideAtOnce(&deletion{replica: replica}, now, false)
		m.compute()
		m.sleep(rapid.SampledFrom(bounds).Draw(t, "second pause"))
		m.compute()
	}
}

// crashDuringDeletion lets a pod crash, and become Ready again, after its deletion is
// allowed.
func (m *budgetModel) crashDuringDeletion(t *rapid.T) {
	p := m.pod(t)
	m.decideAtOnce(&deletion{replica: drawReplica(t, "replica")}, p, false)
	for range 2 {
		p, exists := m.api.pods[p.Name]
		if !exists {
			return
		}
		m.t.Logf("pod %s (%s) becomes Ready: %v", p.Name, p.UID, !ready(p))
		m.workload.setReady(p, !ready(p))
		for range rapid.IntRange(0, 2).Draw(t, "reconciliations") {
			m.compute()
			m.sleep(settledRetention + minInterval)
		}
	}
}

// deleteNewPod admits the deletion of a pod that the controller does not know.
func (m *budgetModel) deleteNewPod(t *rapid.T) {
	before := len(m.api.podEvents)
	if !m.workload.replace() {
		t.SkipNow()
	}
	name := m.api.podEvents[before].object.Name
	m.workload.setReady(m.api.pods[name], true)
	m.decideAtOnce(&deletion{replica: drawReplica(t, "replica")}, m.api.pods[name], false)
	for range 3 {
		m.computeFrom(0)
		m.sleep(settledRetention + minInterval)
	}
}

// electLeader restarts the controller with the caches of a revision before its last
// writes, which follow from a deletion.
func (m *budgetModel) electLeader(t *rapid.T) {
	revision := m.api.revision
	m.decideAtOnce(&deletion{replica: drawReplica(t, "replica")}, m.pod(t), true)
	for range 3 {
		m.compute()
		m.sleep(settledRetention + minInterval)
	}
	m.t.Logf("the controller restarts at revision %d of %d", revision, m.api.revision)
	m.admitter.Restart(controllerProcess, max(revision, m.guarded))
	m.computeFrom(rapid.IntRange(0, 2).Draw(t, "pod events"))
	m.decideAtOnce(&deletion{replica: drawReplica(t, "other replica")}, m.pod(t), true)
}

// compute computes the budgets from the present pods while all other calls wait.
func (m *budgetModel) compute() { m.computeFrom(1 << 30) }

// computeFrom computes the budgets after that many more pod events.
func (m *budgetModel) computeFrom(pods int) {
	before := m.api.waiting()
	m.admitter.Deliver(controllerProcess, pods, 1<<30)
	m.sleep(minInterval)
	m.admitter.Reconcile(true)
	m.settle()
	m.serveNew(before)
}

// newCalls returns the waiting calls other than those.
func (m *budgetModel) newCalls(old []*apiCall) []*apiCall {
	return slices.DeleteFunc(m.api.waiting(), func(c *apiCall) bool { return slices.Contains(old, c) })
}

// serveNew serves calls other than those.
func (m *budgetModel) serveNew(old []*apiCall) {
	for range 100 {
		calls := m.newCalls(old)
		if len(calls) == 0 {
			return
		}
		m.serve(calls[0], fateServed)
	}
}
