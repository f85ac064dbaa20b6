package budget

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
)

// ownerTally sums up the replicas of owners.
type ownerTally struct {
	ctx       context.Context //nolint:containedctx // the tally of one reconciliation
	owners    *owners
	namespace string
	// known are the owners read so far, by UID.
	known map[types.UID]owner
	// owned are the pods with an owner, by the UID of ownedPods.top.
	owned map[types.UID]*ownedPods
	// orphans is the number of pods without an owner.
	orphans int32
	// direct is the number of available pods by their direct controller.
	direct map[types.UID]int32
}

func newOwnerTally(ctx context.Context, owners *owners, namespace string) *ownerTally {
	return &ownerTally{ctx: ctx, owners: owners, namespace: namespace,
		known: map[types.UID]owner{}, owned: map[types.UID]*ownedPods{}, direct: map[types.UID]int32{}}
}

// chain returns the controllers above a pod.
func (t *ownerTally) chain(p *corev1.Pod) ([]owner, error) {
	var chain []owner
	err := ownerchain.Walk(p.OwnerReferences, func(kind schema.GroupVersionKind, ref *metav1.OwnerReference) ([]metav1.OwnerReference, error) {
		o, err := t.owner(kind, ref)
		chain = append(chain, o)
		return o.refs, err
	})
	return chain, err
}

func (t *ownerTally) owner(kind schema.GroupVersionKind, ref *metav1.OwnerReference) (owner, error) {
	if o, ok := t.known[ref.UID]; ok {
		return o, nil
	}
	o, err := t.owners.get(t.ctx, kind.GroupKind(), kind.Version, t.namespace, ref.Name, ref.UID)
	if err != nil {
		return owner{}, err
	}
	o.uid = ref.UID
	t.known[ref.UID] = o
	return o, nil
}

// count adds a pod with the controllers above it.
func (t *ownerTally) count(p *corev1.Pod, chain []owner) {
	if budget.Completed(p) {
		return
	}
	exists := p.DeletionTimestamp == nil
	if len(chain) == 0 {
		if exists {
			t.orphans++
		}
		return
	}
	if budget.CountsAsAvailable(p) {
		t.direct[chain[0].uid]++
	}
	top := topmostWithReplicas(chain)
	a := t.owned[top.uid]
	if a == nil {
		a = newOwnedPods(top)
		t.owned[top.uid] = a
	}
	a.add(chain, exists)
}

// target counts the budget's target even if it has no pods.
func (t *ownerTally) target(ref *v1alpha1.TargetRef) error {
	kind := schema.GroupKind{Group: budget.GroupOf(ref.APIVersion), Kind: ref.Kind}
	o, err := t.owners.get(t.ctx, kind, "", t.namespace, ref.Name, "")
	if err != nil {
		return err
	}
	if _, known := t.known[o.uid]; !known && !o.deleted && o.wanted != nil {
		t.owned[o.uid] = newOwnedPods(o)
	}
	return nil
}

// total returns the sum of the replicas; an orphan counts as 1. Unknown says why the
// replicas of an owner are unknown, whose existing pods count.
func (t *ownerTally) total() (total int32, unknown string) {
	total = t.orphans
	for _, a := range t.owned {
		n, why := a.total()
		total += n
		// The same one in each reconciliation.
		if why != "" && (unknown == "" || why < unknown) {
			unknown = why
		}
	}
	return total, unknown
}

// exactReplicas are kinds without a surge: pods above spec.replicas are about to be
// deleted.
var exactReplicas = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Kind: "ReplicationController"}:      true,
}

func (t *ownerTally) excess() int32 {
	var excess int32
	for uid, available := range t.direct {
		if o := t.known[uid]; exactReplicas[o.GroupKind] && !o.deleted && o.wanted != nil {
			excess += max(available-*o.wanted, 0)
		}
	}
	return excess
}
