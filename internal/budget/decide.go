package budget

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Pod is a pod that a request affects, as it was at the time of the request.
type Pod struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// Effects are the effects of an in-place change.
	Effects []Effect
	// BecomesUnavailable reports whether the request makes an available pod unavailable.
	BecomesUnavailable bool
	// Token identifies the charge; see DeletedEntry. Before is set in Decision.Renewed
	// only: it identifies the charge that Token replaces.
	Token, Before string
}

// Request asks to charge a budget for pods, or to refund the charges.
type Request struct {
	Operation v1alpha1.PodOperation
	Pods      []Pod
	// Generation is the generation of the budget by which Pods were chosen.
	Generation int64
	// AdmissionID identifies the admission request within this process.
	AdmissionID uint64
	// Refund removes the charges that the same Request without Refund added.
	Refund bool
	// DryRun decides without charging.
	DryRun bool
}

// Decision is the decision on a Request.
type Decision struct {
	// Admitted reports whether the request was charged, cost nothing, or was refunded.
	Admitted bool
	// Outdated reports whether the budget has another generation than the Request.
	Outdated bool
	// Unsynced reports whether the controller has not handled the current spec yet.
	Unsynced bool
	// UnknownReplicas says why the budget cannot compute what is allowed; see
	// Derivation.UnknownReplicas.
	UnknownReplicas string
	// Charged are the pods that are charged for this Request, without those that were
	// charged before.
	Charged []Pod
	// Renewed are the pods that were charged before. Their charges are renewed: the
	// earlier request can no longer expire or refund them.
	Renewed []Pod
	// Needed is how many available pods the request would make unavailable.
	Needed int32
	// EarlierCharges is the number of charges of earlier requests.
	EarlierCharges int
	// Numbers are the numbers that the decision was based on.
	Numbers
}

// Decide decides which of the requests fit into the budget, in their order. It
// returns the budget with their charges, or nil if it does not change. It is
// idempotent: a pod is charged once for an operation.
func Decide(b *v1alpha1.PodUnavailableBudget, group []Request) (next *v1alpha1.PodUnavailableBudget, decisions []Decision) {
	l := newLedger(b)
	for _, r := range group {
		decisions = append(decisions, l.decide(r))
	}
	if !l.changed {
		return nil, decisions
	}
	next = b.DeepCopy()
	next.Status.DeletedPods, next.Status.UnavailablePods = l.deleted, l.unavailable
	next.Status.UnavailableAllowed = l.allowed
	return next, decisions
}

func (l *ledger) decide(r Request) Decision {
	if r.Refund {
		l.refund(r)
		return Decision{Admitted: true}
	}
	d := Decision{Numbers: l.numbers(), UnknownReplicas: unknownReplicas(l.budget), EarlierCharges: len(l.deleted) + len(l.unavailable)}
	if d.Outdated = r.Generation != l.budget.Generation; d.Outdated {
		return d
	}
	if l.budget.Status.ObservedGeneration != l.budget.Generation {
		d.Unsynced = true
		return d
	}
	var uncharged, charged []Pod
	for _, p := range r.Pods {
		if l.isChargedFor(r.Operation, p) {
			charged = append(charged, p)
			continue
		}
		uncharged = append(uncharged, p)
		// A pod that is charged for another operation costs nothing more.
		if p.BecomesUnavailable && !l.isCharged(p) {
			d.Needed++
		}
	}
	enough := d.Needed <= l.allowed
	if l.budget.Spec.ProtectNotReady && d.Needed == 0 && !l.areCharged(uncharged) {
		// Of 0 wanted pods 0 may be unavailable. The rest of a scale-down is not protected.
		enough = l.allowed > 0 || d.Total == 0 && d.UnknownReplicas == ""
	}
	if d.Admitted = enough; !enough || r.DryRun {
		return d
	}
	for _, p := range charged {
		if renewed, ok := l.extend(r.Operation, p); ok {
			d.Renewed = append(d.Renewed, renewed)
		}
	}
	for _, p := range uncharged {
		if p.BecomesUnavailable {
			l.charge(r.Operation, p)
			p.Token = l.budget.ResourceVersion
			d.Charged = append(d.Charged, p)
		}
	}
	l.allowed -= d.Needed
	l.current -= d.Needed
	return d
}

// unknownReplicas returns the message of condition Synced, if it is False.
func unknownReplicas(b *v1alpha1.PodUnavailableBudget) string {
	if c := b.Status.GetCondition(v1alpha1.BudgetSynced); c != nil && c.IsFalse() {
		return c.Message
	}
	return ""
}
