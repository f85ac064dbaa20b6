package budget

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// ledger is the state of a budget while a group of requests is decided.
type ledger struct {
	budget      *v1alpha1.PodUnavailableBudget
	deleted     map[types.UID]string
	unavailable map[string]string
	allowed     int32
	// current is how many pods are available and not charged, also not in this group. Only the
	// controller writes it to the status.
	current int32
	changed bool
	// fresh are the charges that are new or renewed.
	fresh sets.Set[chargeKey]
}

// chargeKey identifies a charge: a pod has one of a deletion and one of in-place changes.
type chargeKey struct {
	pod     types.UID
	deletes bool
}

func keyOf(op v1alpha1.PodOperation, p Pod) chargeKey { return chargeKey{p.UID, op.DeletesPod()} }

func newLedger(b *v1alpha1.PodUnavailableBudget) *ledger {
	l := &ledger{
		budget: b, allowed: b.Status.UnavailableAllowed, current: b.Status.CurrentAvailable,
		deleted: maps.Clone(b.Status.DeletedPods), unavailable: maps.Clone(b.Status.UnavailablePods), fresh: sets.New[chargeKey](),
	}
	if l.deleted == nil {
		l.deleted = map[types.UID]string{}
	}
	if l.unavailable == nil {
		l.unavailable = map[string]string{}
	}
	return l
}

func (l *ledger) areCharged(pods []Pod) bool {
	for _, p := range pods {
		if !l.isCharged(p) {
			return false
		}
	}
	return true
}

// extend renews the charge of a pod, unless this group has written it, and adds the
// effects of the request. It returns the pod with its tokens; false if it was not renewed.
func (l *ledger) extend(op v1alpha1.PodOperation, p Pod) (Pod, bool) {
	renews := !l.fresh.Has(keyOf(op, p))
	if renews {
		p.Before, p.Token = l.token(op, p), l.budget.ResourceVersion
		l.fresh.Insert(keyOf(op, p))
		l.changed = true
	}
	if op.DeletesPod() {
		e := ParseDeletedEntry(l.deleted[p.UID])
		if renews {
			e.Token = p.Token
		}
		l.deleted[p.UID] = e.String()
		return p, renews
	}
	e := ParseEntry(l.unavailable[p.Name])
	if e.Effects = mergeEffects(e.Effects, p.Effects); renews {
		e.ResourceVersion, e.Token = p.ResourceVersion, p.Token
	}
	l.unavailable[p.Name] = e.String()
	return p, renews
}

// refund removes charges, except those that were renewed since. It does not raise
// UnavailableAllowed: the stored 0 may stand for a negative number, or the pod may really
// be unavailable. Only the controller knows.
func (l *ledger) refund(r Request) {
	for _, p := range r.Pods {
		// Another request may use the charge, or have charged the pod again.
		if !l.isChargedFor(r.Operation, p) || l.token(r.Operation, p) != p.Token {
			continue
		}
		if r.Operation.DeletesPod() {
			delete(l.deleted, p.UID)
		} else {
			delete(l.unavailable, p.Name)
		}
		l.fresh.Delete(keyOf(r.Operation, p))
		l.changed = true
	}
}

func (l *ledger) charge(op v1alpha1.PodOperation, p Pod) {
	l.changed = true
	l.fresh.Insert(keyOf(op, p))
	if op.DeletesPod() {
		l.deleted[p.UID] = DeletedEntry{p.ResourceVersion, l.budget.ResourceVersion}.String()
		return
	}
	l.unavailable[p.Name] = Entry{p.ResourceVersion, p.UID, l.budget.ResourceVersion, p.Effects}.String()
}

// token returns the token of the charge of a pod.
func (l *ledger) token(op v1alpha1.PodOperation, p Pod) string {
	if op.DeletesPod() {
		return ParseDeletedEntry(l.deleted[p.UID]).Token
	}
	return ParseEntry(l.unavailable[p.Name]).Token
}

// isChargedFor reports whether the pod is charged for this operation.
func (l *ledger) isChargedFor(op v1alpha1.PodOperation, p Pod) bool {
	if op.DeletesPod() {
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

func (l *ledger) numbers() Numbers {
	s := l.budget.Status
	return Numbers{Total: s.TotalReplicas, Desired: s.DesiredAvailable, Current: l.current, Allowed: l.allowed}
}
