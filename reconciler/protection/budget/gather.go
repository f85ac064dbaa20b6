package budget

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// maxOwnerDepth is the longest chain of owners that is followed.
const maxOwnerDepth = 8

// gather reads what the numbers of a budget follow from.
func (r *Reconciler) gather(ctx context.Context, b *v1alpha1.PodUnavailableBudget, scope budget.Scope) (budget.Observed, error) {
	expired, _ := r.charges.observe(b) // before the pods are read
	pods, resourceVersion, err := r.pods(ctx, b, slices.ContainsFunc(keysOf(b), expired))
	if err != nil {
		return budget.Observed{}, err
	}
	exists := map[types.UID]bool{}
	observed := budget.Observed{ResourceVersion: resourceVersion, Expired: expired, ExistsUncovered: func(uid types.UID) bool { return exists[uid] }}
	t := ownerTally{ctx: ctx, owners: r.owners, namespace: b.Namespace, known: map[types.UID]owner{}, counted: map[types.UID]int32{}}
	for _, p := range pods {
		chain, err := t.chain(p)
		if err != nil {
			return observed, err
		}
		above := asChain(chain)
		// Pods of an application that is being deleted may be deleted at any time
		// without a decision, so they do not count.
		if !scope.Covers(p, above) || above.Terminating() {
			exists[p.UID] = true
			continue
		}
		observed.Pods = append(observed.Pods, p)
		t.count(p, chain)
	}
	if ref := b.Spec.TargetRef; ref != nil {
		if err := t.target(ref); err != nil {
			return observed, err
		}
	}
	observed.Total, observed.Excess = t.total(), t.excess()
	return observed, nil
}

// pods returns the pods of the budget's namespace and their resourceVersion. It
// lists them live if a charge has expired, because a cache that lags may not show yet
// that the request took effect at the end of its timeout; and if the cache is older
// than the numbers in the status, as it may be after a change of the leader.
func (r *Reconciler) pods(ctx context.Context, b *v1alpha1.PodUnavailableBudget, expired bool) ([]*corev1.Pod, string, error) {
	resourceVersion := r.podWatch.resourceVersion()
	if !expired && (b.Status.PodsResourceVersion == "" || budget.NotOlder(resourceVersion, b.Status.PodsResourceVersion)) {
		pods, err := r.podLister.Pods(b.Namespace).List(labels.Everything())
		return pods, resourceVersion, err
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

// ownerTally sums up the replicas of owners.
type ownerTally struct {
	ctx       context.Context
	owners    *owners
	namespace string
	// known are the owners read so far, by UID.
	known map[types.UID]owner
	// counted are the replicas of the topmost owners; an orphan counts as 1.
	counted map[types.UID]int32
	orphans int32
	// direct is the number of available pods by their direct controller.
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
		return owner{}, fmt.Errorf("parse apiVersion of owner %s: %w", ref.Name, err)
	}
	o, err := t.owners.get(t.ctx, gv.WithKind(ref.Kind).GroupKind(), gv.Version, t.namespace, ref.Name, ref.UID)
	if err != nil {
		return owner{}, err
	}
	o.uid = ref.UID
	t.known[ref.UID] = o
	return o, nil
}

// count adds the replicas of the pod's application, once per topmost owner.
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

// target counts the budget's target even if it has no pods.
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
		if o := t.known[uid]; exactReplicas[o.GroupKind] && !o.deleted && o.replicas != nil {
			excess += max(available-*o.replicas, 0)
		}
	}
	return excess
}
