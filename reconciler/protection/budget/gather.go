package budget

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// deepest is the longest chain of owners that is followed.
const maxOwnerDepth = 8

// gather collects what a budget's numbers follow from.
func (r *Reconciler) gather(ctx context.Context, b *v1alpha1.PodUnavailableBudget, scope budget.Scope) (budget.Observed, error) {
	pods, progress, err := r.pods(ctx, b)
	if err != nil {
		return budget.Observed{}, err
	}
	exists := map[types.UID]bool{}
	seen := budget.Observed{ResourceVersion: progress, Exists: func(uid types.UID) bool { return exists[uid] }}
	t := ownerTally{ctx: ctx, owners: r.owners, namespace: b.Namespace, known: map[types.UID]owner{}, counted: map[types.UID]int32{}}
	for _, p := range pods {
		chain, err := t.chain(p)
		if err != nil {
			return seen, err
		}
		above := asChain(chain)
		// Pods of an application that ends may go at any time, and nobody is
		// asked: nothing can be counted on them.
		if !scope.Covers(p, above) || above.Terminating() {
			exists[p.UID] = true
			continue
		}
		seen.Pods = append(seen.Pods, p)
		t.count(p, chain)
	}
	if ref := b.Spec.TargetRef; ref != nil {
		if err := t.target(ref); err != nil {
			return seen, err
		}
	}
	seen.Total, seen.Excess = t.total(), t.excess()
	return seen, nil
}

// pods returns those of the budget's namespace, and how far that is. Where the
// cache is behind what the last numbers were computed of, as it may be after
// the leader changed, they are listed live.
func (r *Reconciler) pods(ctx context.Context, b *v1alpha1.PodUnavailableBudget) ([]*corev1.Pod, string, error) {
	if progress := r.podWatch.resourceVersion(); b.Status.PodsResourceVersion == "" || budget.NotOlder(progress, b.Status.PodsResourceVersion) {
		pods, err := r.podLister.Pods(b.Namespace).List(labels.Everything())
		return pods, progress, err
	}
	list, err := r.kube.CoreV1().Pods(b.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, list.ResourceVersion, nil
}

func asChain(all []owner) budget.Chain {
	var chain budget.Chain
	for _, o := range all {
		chain = append(chain, budget.Owner{Group: o.Group, Kind: o.Kind, Name: o.name, UID: o.uid, Deleted: o.deleted})
	}
	return chain
}

// tally adds up what owners want.
type ownerTally struct {
	ctx       context.Context
	owners    *owners
	namespace string
	// known are the owners of this gathering, by UID.
	known map[types.UID]owner
	// counted is what the topmost owners want; orphans count as themselves.
	counted map[types.UID]int32
	orphans int32
	// direct are available pods by the controller that made them.
	direct map[types.UID]int32
}

// chain returns the controllers above a pod.
func (t *ownerTally) chain(p *corev1.Pod) ([]owner, error) {
	var chain []owner
	refs := p.OwnerReferences
	for range maxOwnerDepth {
		ref := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: refs})
		if ref == nil {
			return chain, nil
		}
		o, err := t.owner(ref)
		if err != nil {
			return nil, err
		}
		chain, refs = append(chain, o), o.refs
	}
	return chain, nil
}

func (t *ownerTally) owner(ref *metav1.OwnerReference) (owner, error) {
	if o, ok := t.known[ref.UID]; ok {
		return o, nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return owner{}, fmt.Errorf("owner %s: %w", ref.Name, err)
	}
	o, err := t.owners.get(t.ctx, gv.WithKind(ref.Kind).GroupKind(), gv.Version, t.namespace, ref.Name, ref.UID)
	if err != nil {
		return owner{}, err
	}
	o.uid = ref.UID
	t.known[ref.UID] = o
	return o, nil
}

// count adds what the pod's application wants, once for each topmost owner.
func (t *ownerTally) count(p *corev1.Pod, chain []owner) {
	if budget.Finished(p) {
		return
	}
	if budget.CountsAsAvailable(p) && len(chain) > 0 {
		if t.direct == nil {
			t.direct = map[types.UID]int32{}
		}
		t.direct[chain[0].uid]++
	}
	for i := len(chain) - 1; i >= 0; i-- {
		if o := chain[i]; o.replicas != nil {
			t.counted[o.uid] = *o.replicas
			return
		}
	}
	if p.DeletionTimestamp == nil {
		t.orphans++
	}
}

// target counts the workload that the budget names even if it has no pods.
func (t *ownerTally) target(ref *v1alpha1.TargetRef) error {
	kind := schema.GroupKind{Group: budget.GroupOf(ref.APIVersion), Kind: ref.Kind}
	o, err := t.owners.get(t.ctx, kind, "", t.namespace, ref.Name, "")
	if err != nil {
		return err
	}
	if _, known := t.known[o.uid]; !known && !o.deleted && o.replicas != nil {
		t.counted[o.uid] = *o.replicas
	}
	return nil
}

func (t *ownerTally) total() int32 {
	total := t.orphans
	for _, n := range t.counted {
		total += n
	}
	return total
}

// exact are kinds that never have more pods than spec.replicas on purpose: what
// is more is about to be removed.
var exactReplicas = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Kind: "ReplicationController"}:      true,
}

func (t *ownerTally) excess() int32 {
	var excess int32
	for uid, available := range t.direct {
		if o := t.known[uid]; exactReplicas[o.GroupKind] && !o.deleted && o.replicas != nil {
			excess += max(available-*o.replicas, 0)
		}
	}
	return excess
}
