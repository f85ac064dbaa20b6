package budget

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Pod is a pod that a request affects, as it was at the time of the request.
type Pod struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// Generation is metadata.generation of the pod.
	Generation int64
	// Available reports whether the request makes an available pod unavailable.
	Available bool
	// Token identifies the charge of a deletion; see DeletedEntry. In Verdict.Renewed,
	// Before identifies the charge that it replaces.
	Token, Before string
}

// Charge is the request to charge a budget for pods, or to refund them.
type Charge struct {
	Operation v1alpha1.PodOperation
	Pods      []Pod
	// Generation is the generation of the budget by which Pods were chosen.
	Generation int64
	// AdmissionID identifies the admission request within this process.
	AdmissionID uint64
	// Refund removes the charges that the same Charge without Refund added.
	Refund bool
	// DryRun decides without charging.
	DryRun bool
}

// Verdict is the answer to a Charge.
type Verdict struct {
	// Passes reports whether the request was charged, cost nothing, or was refunded.
	Passes bool
	// Outdated reports whether the budget has another generation than the Charge.
	Outdated bool
	// Unsynced reports whether the numbers do not follow from the present spec yet.
	Unsynced bool
	// Charged are the pods that this Charge charged, without those that were
	// charged before.
	Charged []Pod
	// Renewed are the pods that were charged for a deletion before. Their charges are
	// renewed: the earlier request can no longer expire or refund them.
	Renewed []Pod
	// Needed is how many available pods the request would make unavailable.
	Needed int32
	// Numbers are the numbers that the decision was based on.
	Numbers
}

// Decide decides which of the charges fit into the budget, in their order. It
// returns the budget with their charges, or nil if it does not change. It is
// idempotent: a pod is charged once for an operation.
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

// ledger is the state of a budget while a group of charges is decided.
type ledger struct {
	budget      *v1alpha1.PodUnavailableBudget
	deleted     map[types.UID]string
	unavailable map[string]string
	allowed     int32
	changed     bool
	// fresh are the pods whose charge for a deletion is new or renewed.
	fresh sets.Set[types.UID]
}

func newLedger(b *v1alpha1.PodUnavailableBudget) *ledger {
	l := &ledger{
		budget: b, allowed: b.Status.UnavailableAllowed,
		deleted: maps.Clone(b.Status.DeletedPods), unavailable: maps.Clone(b.Status.UnavailablePods), fresh: sets.New[types.UID](),
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
	var uncharged, charged []Pod
	for _, p := range c.Pods {
		if l.isChargedFor(c.Operation, p) {
			charged = append(charged, p)
			continue
		}
		uncharged = append(uncharged, p)
		// A pod that is charged for another operation costs nothing more.
		if p.Available && !l.isCharged(p) {
			v.Needed++
		}
	}
	enough := v.Needed <= l.allowed
	if l.budget.Spec.ProtectNotReady && v.Needed == 0 && !l.areCharged(uncharged) {
		enough = l.allowed > 0
	}
	if v.Passes = enough; !enough || c.DryRun {
		return v
	}
	for _, p := range charged {
		l.extendResize(c.Operation, p)
		if deletesPod(c.Operation) && !l.fresh.Has(p.UID) {
			v.Renewed = append(v.Renewed, l.renew(p))
		}
	}
	for _, p := range uncharged {
		if p.Available {
			l.charge(c.Operation, p)
			p.Token = l.budget.ResourceVersion
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

// renew renews the charge of a deletion, and returns the pod with its tokens.
func (l *ledger) renew(p Pod) Pod {
	e := ParseDeletedEntry(l.deleted[p.UID])
	p.Before, p.Token = e.Token, l.budget.ResourceVersion
	e.Token = p.Token
	l.deleted[p.UID], l.changed = e.String(), true
	l.fresh.Insert(p.UID)
	return p
}

// refund removes charges, except those that were renewed since. It leaves UnavailableAllowed to the controller, which may
// have computed less than 0, stored as 0, or may have seen that the pod is unavailable.
func (l *ledger) refund(c Charge) {
	for _, p := range c.Pods {
		if !l.isChargedFor(c.Operation, p) {
			continue
		}
		if deletesPod(c.Operation) {
			if ParseDeletedEntry(l.deleted[p.UID]).Token != p.Token {
				continue // another request uses it, or has charged the pod again
			}
			delete(l.deleted, p.UID)
			l.fresh.Delete(p.UID)
		} else {
			delete(l.unavailable, p.Name)
		}
		l.changed = true
	}
}

func (l *ledger) charge(op v1alpha1.PodOperation, p Pod) {
	l.changed = true
	if deletesPod(op) {
		l.deleted[p.UID] = DeletedEntry{p.ResourceVersion, l.budget.ResourceVersion}.String()
		l.fresh.Insert(p.UID)
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

// extendResize keeps the charge of a resize until a later resize, or another
// in-place change, has ended too.
func (l *ledger) extendResize(op v1alpha1.PodOperation, p Pod) {
	if deletesPod(op) {
		return
	}
	now, next := ParseEntry(l.unavailable[p.Name]), entryOf(op, p)
	if now.ResizeGeneration != 0 && (next.ResizeGeneration == 0 || next.ResizeGeneration > now.ResizeGeneration) {
		l.unavailable[p.Name], l.changed = next.String(), true
	}
}

// isChargedFor reports whether the pod is charged for this operation.
func (l *ledger) isChargedFor(op v1alpha1.PodOperation, p Pod) bool {
	if deletesPod(op) {
		_, ok := l.deleted[p.UID]
		return ok
	}
	entry, ok := l.unavailable[p.Name]
	return ok && ParseEntry(entry).UID == p.UID
}

// isCharged reports whether the pod is charged for any operation.
func (l *ledger) isCharged(p Pod) bool {
	return l.isChargedFor(v1alpha1.OperationDelete, p) || l.isChargedFor(v1alpha1.OperationUpdate, p)
}

// deletesPod reports whether the operation deletes the pod.
func deletesPod(op v1alpha1.PodOperation) bool {
	return op == v1alpha1.OperationDelete || op == v1alpha1.OperationEvict
}

func (l *ledger) numbers() Numbers {
	s := l.budget.Status
	return Numbers{Total: s.TotalReplicas, Desired: s.DesiredAvailable, Current: s.CurrentAvailable, Allowed: l.allowed}
}
