package budget

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

func (m *budgetModel) desired(b *v1alpha1.PodUnavailableBudget) int32 {
	if b.Spec.MinAvailable != nil {
		return b.Spec.MinAvailable.IntVal
	}
	return max(*m.workload.set.Spec.Replicas-b.Spec.MaxUnavailable.IntVal, 0)
}

// knownAvailable returns how many pods are available without a pod and without all
// available ones whose deletion is admitted, by the state that a budget's decisions
// are based on.
func (m *budgetModel) knownAvailable(name string, uid types.UID) (n int32) {
	for _, p := range m.api.podsAt(m.admitter.Known(name)) {
		admitted := m.deleted[p.UID] || p.UID == uid
		for _, r := range m.requests {
			admitted = admitted || r.state == stateAllowed && !r.dryRun && r.pod.UID == p.UID && budget.Healthy(r.pod) && !r.wasUnavailable
		}
		if budget.Healthy(p) && !admitted {
			n++
		}
	}
	return n
}

// observe checks the invariants.
func (m *budgetModel) observe() {
	replicas := *m.workload.set.Spec.Replicas
	for _, b := range m.api.budgets {
		if available := replicas - m.workload.disrupted; available < m.desired(b) {
			m.fail("budget %s: deletions have made %d of %d pods unavailable, %d have to be available", b.Name, m.workload.disrupted, replicas, m.desired(b))
		}
		m.checkNumbers(b)
	}
	for _, r := range m.requests {
		if r.state != stateEnded {
			m.observeRequest(r)
		}
	}
}

// checkNumbers checks the invariant of package internal/budget, and that the numbers
// never follow from an older state of the pods than before.
func (m *budgetModel) checkNumbers(b *v1alpha1.PodUnavailableBudget) {
	known, room := m.admitter.Known(b.Name), m.admitter.Room(b.Name)
	if known < m.known[b.Name] {
		m.fail("budget %s: its numbers follow from revision %d after %d", b.Name, known, m.known[b.Name])
	}
	m.known[b.Name] = known
	charged, available := m.admitter.Charged(b.Name), int32(0)
	for _, p := range m.api.podsAt(known) {
		if budget.Healthy(p) && !charged.Has(p.UID) && !m.deleted[p.UID] {
			available++
		}
	}
	if room > 0 && available-room < m.desired(b) {
		m.fail("budget %s: %d more pods may become unavailable, but at revision %d %d pods are available without a charge or a deletion, %d have to be",
			b.Name, room, known, available, m.desired(b))
	}
}

// observeRequest checks an open request.
func (m *budgetModel) observeRequest(r *deletion) {
	p, exists := m.api.pods[r.pod.Name]
	exists = exists && p.UID == r.pod.UID && p.DeletionTimestamp == nil
	if !exists || !budget.Healthy(p) {
		r.certain, r.wasUnavailable = false, true
	}
	for _, b := range m.api.budgets {
		if r.certain && r.state == stateAsking && !r.fitted[b.Name] {
			r.fitted[b.Name] = m.knownAvailable(b.Name, r.pod.UID) >= m.desired(b)
		}
		charged := m.admitter.Charged(b.Name).Has(r.pod.UID)
		r.neverFull = r.neverFull && (charged || m.admitter.Room(b.Name) > 0)
		// The webhook does not read the old state of a deletion again.
		if r.state == stateAllowed && exists && m.costs(r) && !charged {
			m.fail("%s is allowed and may still be carried out, but pod %s is not charged to budget %s", r, r.pod.UID, b.Name)
		}
	}
}

// costs reports whether a request makes an available pod unavailable, as the webhook
// decided. It reads the pod of an eviction itself.
func (m *budgetModel) costs(r *deletion) bool {
	return !r.dryRun && budget.Healthy(r.pod) && (!r.evict || !r.wasUnavailable)
}
