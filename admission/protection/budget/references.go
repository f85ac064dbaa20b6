package budget

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// relied is for how long it is remembered who relies on a charge: as long as the
// API server may work on a request, and more.
const referenceTTL = 2 * time.Minute

// Reliance remembers which admissions of this replica go on by which charges. Two
// requests to delete one pod share its charge; when the answer to one of them is
// lost, the other deletes the pod all the same, so the charge has to stay. It is
// given back by the last who leaves, and only where one of this replica took it:
// what another replica took, others may rely on there.
type ChargeReferences struct {
	lastID atomic.Uint64

	mu       sync.Mutex
	byCharge *utilcache.Expiring
}

// NewReliance returns one that remembers nothing.
func NewChargeReferences() *ChargeReferences {
	return &ChargeReferences{byCharge: utilcache.NewExpiring()}
}

// chargeKey is one charge. A deletion and an eviction are the same.
type chargeKey struct {
	budget  types.NamespacedName
	pod     types.UID
	removes bool
}

// reliers are who relies on a charge, and who of them took it; 0 for none.
type references struct {
	charger    uint64
	admissions sets.Set[uint64]
}

// next returns the name of an admission.
func (r *ChargeReferences) nextID() uint64 { return r.lastID.Add(1) }

// pass is told of who passes. It may be told again, when a group is decided anew.
func (r *ChargeReferences) add(key types.NamespacedName, c budget.Charge, took []budget.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range c.Pods {
		k := keyOf(key, c, p)
		mine := slices.ContainsFunc(took, func(t budget.Pod) bool { return t.UID == p.UID })
		now := r.get(k)
		switch {
		case mine: // whoever relied on one before has been given up
			now = references{c.AdmissionID, sets.New(c.AdmissionID)}
		case now.charger == c.AdmissionID: // it was about to, and another replica was first
			now.charger = 0
			fallthrough
		default:
			now.admissions.Insert(c.AdmissionID)
		}
		r.byCharge.Set(k, now, referenceTTL)
	}
}

// leave is told of who was let through and whose request came to nothing. It
// returns the pods whose charges nobody relies on any more.
func (r *ChargeReferences) release(key types.NamespacedName, c budget.Charge) (free []budget.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range c.Pods {
		k := keyOf(key, c, p)
		now := r.get(k)
		now.admissions.Delete(c.AdmissionID)
		if now.admissions.Len() == 0 && now.charger != 0 {
			free = append(free, p)
		}
	}
	return free
}

// unreliedOn leaves out of a group what is to be given back though somebody has
// come to rely on it; fewer says that it did.
func (r *ChargeReferences) dropReferenced(key types.NamespacedName, group []budget.Charge) (kept []budget.Charge, fewer bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept = slices.Clone(group)
	for i, c := range kept {
		if !c.Refund {
			continue
		}
		kept[i].Pods = slices.DeleteFunc(slices.Clone(c.Pods), func(p budget.Pod) bool { return r.get(keyOf(key, c, p)).admissions.Len() > 0 })
		fewer = fewer || len(kept[i].Pods) < len(c.Pods)
	}
	return kept, fewer
}

func (r *ChargeReferences) get(k chargeKey) references {
	if found, ok := r.byCharge.Get(k); ok {
		return found.(references)
	}
	return references{admissions: sets.New[uint64]()}
}

func keyOf(key types.NamespacedName, c budget.Charge, p budget.Pod) chargeKey {
	return chargeKey{key, p.UID, c.Operation == v1alpha1.OperationDelete || c.Operation == v1alpha1.OperationEvict}
}
