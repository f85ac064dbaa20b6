package budget

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/internal/budget"
)

// referenceTTL is how long a reference is kept. It exceeds the API server's request
// timeout.
const referenceTTL = 2 * time.Minute

// ChargeReferences counts which admission requests of this replica share a charge. Two
// requests to delete one pod share one charge. If the answer to one of them is lost,
// the other still deletes the pod, so the charge has to stay. The last request that
// drops its reference refunds the charge, but only if this replica wrote the charge and
// no request of another replica has renewed it since.
type ChargeReferences struct {
	lastID atomic.Uint64

	mu       sync.Mutex
	byCharge *utilcache.Expiring
}

// NewChargeReferences returns an empty ChargeReferences.
func NewChargeReferences() *ChargeReferences {
	return &ChargeReferences{byCharge: utilcache.NewExpiring()}
}

// chargeKey identifies a charge. A deletion and an eviction have the same key.
type chargeKey struct {
	budget  types.NamespacedName
	pod     types.UID
	deletes bool
}

// references are the requests that use a charge.
type references struct {
	admissions sets.Set[uint64]
	// owned says that this replica wrote the charge. It is false after a write with an
	// unknown outcome: another replica may have written it.
	owned bool
	// token identifies the charge as this replica wrote it last.
	token string
}

// nextID returns the ID of an admission request.
func (r *ChargeReferences) nextID() uint64 { return r.lastID.Add(1) }

// add records that a request uses charges. It may be repeated for a retried group.
func (r *ChargeReferences) add(key types.NamespacedName, request budget.Request, charged []budget.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range request.Pods {
		k := keyOf(key, request, p)
		chargedNow := slices.ContainsFunc(charged, func(t budget.Pod) bool { return t.UID == p.UID })
		current := r.get(k)
		if chargedNow { // the references to an earlier charge are obsolete
			current = references{admissions: sets.New[uint64]()}
		}
		current.admissions.Insert(request.AdmissionID)
		r.byCharge.Set(k, current, referenceTTL)
	}
}

// confirm records the charges that the request has written.
func (r *ChargeReferences) confirm(key types.NamespacedName, request budget.Request, d budget.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range d.Charged {
		k := keyOf(key, request, p)
		current := r.get(k)
		current.owned, current.token = true, p.Token
		r.byCharge.Set(k, current, referenceTTL)
	}
	for _, p := range d.Renewed {
		k := keyOf(key, request, p)
		current := r.get(k)
		current.owned = current.owned && current.token == p.Before
		current.token = p.Token
		r.byCharge.Set(k, current, referenceTTL)
	}
}

// remove removes the references of a request that has failed. It returns the pods
// whose charges are not referenced anymore.
func (r *ChargeReferences) remove(key types.NamespacedName, request budget.Request) (free []budget.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range request.Pods {
		k := keyOf(key, request, p)
		current := r.get(k)
		current.admissions.Delete(request.AdmissionID)
		if current.admissions.Len() == 0 && current.owned {
			p.Token = current.token
			free = append(free, p)
		}
	}
	return free
}

// dropReferenced removes from refunds the pods whose charges are referenced again;
// fewer reports whether it removed any.
func (r *ChargeReferences) dropReferenced(key types.NamespacedName, group []budget.Request) (kept []budget.Request, fewer bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept = slices.Clone(group)
	for i, request := range kept {
		if !request.Refund {
			continue
		}
		kept[i].Pods = slices.DeleteFunc(slices.Clone(request.Pods), func(p budget.Pod) bool { return r.get(keyOf(key, request, p)).admissions.Len() > 0 })
		fewer = fewer || len(kept[i].Pods) < len(request.Pods)
	}
	return kept, fewer
}

func (r *ChargeReferences) get(k chargeKey) references {
	if found, ok := r.byCharge.Get(k); ok {
		return found.(references)
	}
	return references{admissions: sets.New[uint64]()}
}

func keyOf(key types.NamespacedName, request budget.Request, p budget.Pod) chargeKey {
	return chargeKey{key, p.UID, request.Operation.DeletesPod()}
}
