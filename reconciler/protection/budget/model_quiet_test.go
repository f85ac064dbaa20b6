package budget

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// runFor lets everything proceed without faults.
func (m *budgetModel) runFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		m.runOnce()
		m.sleep(time.Second - 90*time.Millisecond)
	}
}

func (m *budgetModel) runOnce() {
	m.deliverAll()
	m.admitter.Reconcile(false)
	m.settle()
	m.serveAll()
	for _, r := range m.requests {
		if r.state == stateAsking && len(r.answer) > 0 {
			m.receive(r)
		}
		if r.state == stateAllowed {
			m.carryOut(r)
		}
	}
	m.settle()
}

// quiet ends all faults. After all time-outs nothing may be charged, and as many pods
// may be deleted as the budgets say.
func (m *budgetModel) quiet() {
	m.t.Logf("quiet")
	for range 4 {
		m.runFor(3 * time.Second)
		for _, p := range m.workload.pods() {
			if p.DeletionTimestamp != nil {
				m.api.removePod(p.Name)
			}
		}
		for m.workload.replace() {
		}
		for _, p := range m.workload.pods() {
			if !ready(p) {
				m.workload.setReady(p, true)
			}
		}
	}
	m.runFor(requestTimeout + chargeTimeout)
	for _, r := range m.requests {
		if r.state != stateEnded {
			m.fail("%s has not ended", r)
		}
	}
	room := *m.workload.set.Spec.Replicas
	for _, b := range m.api.budgets {
		if left := m.admitter.Charged(b.Name); len(left) > 0 {
			m.fail("budget %s: %v are charged after all requests have ended", b.Name, left)
		}
		room = min(room, *m.workload.set.Spec.Replicas-m.desired(b))
	}
	m.deleteUntilDenied(room)
}

// deleteUntilDenied checks that exactly as many deletions are allowed as the budgets
// have room, after a dry run.
func (m *budgetModel) deleteUntilDenied(room int32) {
	pods := m.workload.pods()
	try := func(p *corev1.Pod, evict, dryRun bool) bool {
		r := &deletion{replica: m.asked % webhookReplicas, evict: evict, dryRun: dryRun, dryRunInBody: evict}
		m.add(r, p)
		m.settle()
		m.serveAll()
		if len(r.answer) == 0 {
			m.fail("%s: no answer", r)
		}
		m.t.Logf("%s: answered", r)
		m.receive(r)
		if r.state == stateAllowed {
			m.carryOut(r)
		}
		m.settle()
		m.observe()
		return r.allowed
	}
	for _, evict := range []bool{false, true} {
		if got := try(pods[len(pods)-1], evict, true); got != (room > 0) {
			m.fail("with room for %d deletions a dry run (eviction: %v) was allowed: %v", room, evict, got)
		}
	}
	for i, p := range pods {
		if got := try(p, i%2 == 1, false); got != (int32(i) < room) {
			m.fail("with room for %d deletions number %d was allowed: %v", room, i+1, got)
		}
	}
}
