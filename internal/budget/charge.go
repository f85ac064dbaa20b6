package budget

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Pod is one that a request is about, as it was when the request came.
type Pod struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// Generation is that of its spec.
	Generation int64
	// Counts: the pod is available, so the request costs one.
	Available bool
}

// Charge asks for what a request costs, or gives it back.
type Charge struct {
	Operation v1alpha1.PodOperation
	Pods      []Pod
	// Generation is that of the budget by which the pods were chosen.
	Generation int64
	// Asker is the admission that asks, in this process; see admission/protection/budget.
	AdmissionID uint64
	// Return gives back what the same charge without it took.
	Refund bool
	// Try decides and takes nothing: a dry run.
	DryRun bool
}

// Verdict is the answer to a Charge.
type Verdict struct {
	// Passes: it was charged, or cost nothing, or was given back.
	Passes bool
	// Outdated: the budget is another than that by which the pods were chosen.
	Outdated bool
	// Unsynced: the budget was not yet computed as it stands.
	Unsynced bool
	// Took are the pods that were charged by it, and not by another before.
	Charged []Pod
	// Needed is how many available pods the request would have taken.
	Needed int32
	// Numbers are those that were decided on.
	Numbers
}

// Settle decides about charges that arrived together, in their order, and
// returns the budget after them, or nil where nothing changes. It is
// idempotent: a pod that is charged for an operation is not charged for it
// again.
func Decide(b *v1alpha1.PodUnavailableBudget, group []Charge) (next *v1alpha1.PodUnavailableBudget, verdicts []Verdict) {
	l := newLedger(b)
	for _, charge := range group {
		verdicts = append(verdicts, l.decide(charge))
	}
	if !l.changed {
		return nil, verdicts
	}
	next = b.DeepCopy()
	next.Status.DeletedPods, next.Status.UnavailablePods = l.deleted, l.unavailable
	next.Status.UnavailableAllowed = l.allowed
	return next, verdicts
}

// ledger is the state of a budget while a group is decided.
type ledger struct {
	budget      *v1alpha1.PodUnavailableBudget
	deleted     map[types.UID]string
	unavailable map[string]string
	allowed     int32
	changed     bool
}

func newLedger(b *v1alpha1.PodUnavailableBudget) *ledger {
	l := &ledger{
		budget: b, allowed: b.Status.UnavailableAllowed,
		deleted: maps.Clone(b.Status.DeletedPods), unavailable: maps.Clone(b.Status.UnavailablePods),
	}
	if l.deleted == nil {
		l.deleted = map[types.UID]string{}
	}
	if l.unavailable == nil {
		l.unavailable = map[string]string{}
	}
	return l
}

func (l *ledger) decide(c Charge) Verdict {
	if c.Refund {
		l.refund(c)
		return Verdict{Passes: true}
	}
	v := Verdict{Numbers: l.numbers()}
	if v.Outdated = c.Generation != l.budget.Generation; v.Outdated {
		return v
	}
	if l.budget.Status.ObservedGeneration != l.budget.Generation {
		v.Unsynced = true
		return v
	}
	var fresh, held []Pod
	for _, p := range c.Pods {
		if l.isChargedFor(c.Operation, p) {
			held = append(held, p)
			continue
		}
		fresh = append(fresh, p)
		// A pod that is charged for another operation is paid for.
		if p.Available && !l.isCharged(p) {
			v.Needed++
		}
	}
	enough := v.Needed <= l.allowed
	if l.budget.Spec.ProtectNotReady && v.Needed == 0 && !l.areCharged(fresh) {
		enough = l.allowed > 0
	}
	if v.Passes = enough; !enough || c.DryRun {
		return v
	}
	for _, p := range held {
		l.extendResize(c.Operation, p)
	}
	for _, p := range fresh {
		if p.Available {
			l.charge(c.Operation, p)
			v.Charged = append(v.Charged, p)
		}
	}
	l.allowed -= v.Needed
	return v
}

func (l *ledger) areCharged(pods []Pod) bool {
	for _, p := range pods {
		if !l.isCharged(p) {
			return false
		}
	}
	return true
}

// giveBack takes the charge off the books. What may be unavailable grows only
// by pods that are charged for nothing else.
func (l *ledger) refund(c Charge) {
	for _, p := range c.Pods {
		if !l.isChargedFor(c.Operation, p) {
			continue
		}
		if deletesPod(c.Operation) {
			delete(l.deleted, p.UID)
		} else {
			delete(l.unavailable, p.Name)
		}
		l.changed = true
		if !l.isCharged(p) {
			l.allowed++
		}
	}
}

func (l *ledger) charge(op v1alpha1.PodOperation, p Pod) {
	l.changed = true
	if deletesPod(op) {
		l.deleted[p.UID] = p.ResourceVersion
		return
	}
	l.unavailable[p.Name] = entryOf(op, p).String()
}

func entryOf(op v1alpha1.PodOperation, p Pod) Entry {
	e := Entry{ResourceVersion: p.ResourceVersion, UID: p.UID}
	if op == v1alpha1.OperationResize {
		e.ResizeGeneration = p.Generation
	}
	return e
}

// prolong has the charge of a resize last for as long as what goes on by it too:
// a later resize, or a change whose end is seen otherwise.
func (l *ledger) extendResize(op v1alpha1.PodOperation, p Pod) {
	if deletesPod(op) {
		return
	}
	now, next := ParseEntry(l.unavailable[p.Name]), entryOf(op, p)
	if now.ResizeGeneration != 0 && (next.ResizeGeneration == 0 || next.ResizeGeneration > now.ResizeGeneration) {
		l.unavailable[p.Name], l.changed = next.String(), true
	}
}

// holds says whether the pod is charged for this operation.
func (l *ledger) isChargedFor(op v1alpha1.PodOperation, p Pod) bool {
	if deletesPod(op) {
		_, ok := l.deleted[p.UID]
		return ok
	}
	entry, ok := l.unavailable[p.Name]
	return ok && ParseEntry(entry).UID == p.UID
}

// charged says whether the pod is charged for any operation.
func (l *ledger) isCharged(p Pod) bool {
	return l.isChargedFor(v1alpha1.OperationDelete, p) || l.isChargedFor(v1alpha1.OperationUpdate, p)
}

// removes says whether the pod is gone after the operation.
func deletesPod(op v1alpha1.PodOperation) bool {
	return op == v1alpha1.OperationDelete || op == v1alpha1.OperationEvict
}

func (l *ledger) numbers() Numbers {
	s := l.budget.Status
	return Numbers{Total: s.TotalReplicas, Desired: s.DesiredAvailable, Current: s.CurrentAvailable, Allowed: l.allowed}
}
