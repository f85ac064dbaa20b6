package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// unansweredKinds are the kinds of which an owner was not read in time, and the error. A reconciliation waits for a
// kind once, also if it computes the numbers again after a conflict.
type unansweredKinds map[schema.GroupKind]error

// ownerTally sums up the replicas of owners.
type ownerTally struct {
	ctx       context.Context //nolint:containedctx // the tally of one reconciliation
	owners    *owners
	namespace string
	// target is the target of the budget, unless that is a Knative Service. It does not depend on unanswered.
	target owner
	// known are the owners read so far.
	known      map[ownerKey]owner
	unanswered unansweredKinds
	// chains are the controllers above pods, by the pods' controller.
	chains map[ownerKey]chain
	// resyncAfter is the time until the owners are to be read again.
	resyncAfter time.Duration
	// owned are the pods with an owner, by ownedPods.top.
	owned map[ownerKey]*ownedPods
	// selects reports whether the selector matches a pod template of a Deployment or StatefulSet, also of one that owned does not
	// have: it is below a custom resource, or terminates.
	selects bool
	// orphans is the number of pods without an owner.
	orphans int32
	// direct is the number of available pods by their direct controller.
	direct map[ownerKey]int32
	// pods are counted by their direct controller.
	pods map[ownerKey]podCounts
}

// podCounts are numbers of pods that are not terminating.
type podCounts struct{ active, ended int32 }

func newOwnerTally(ctx context.Context, owners *owners, namespace string, unanswered unansweredKinds) *ownerTally {
	return &ownerTally{ctx: ctx, owners: owners, namespace: namespace, resyncAfter: watchedResync, unanswered: unanswered,
		known: map[ownerKey]owner{}, chains: map[ownerKey]chain{}, owned: map[ownerKey]*ownedPods{}, direct: map[ownerKey]int32{}, pods: map[ownerKey]podCounts{}}
}

// chain has the controllers above pods.
type chain struct {
	// owners are those that want a number of pods, or may want one.
	owners []owner
	// above has all controllers, as a type of package internal/budget.
	above budget.Chain
}

// nodeKind is the kind of the controller of static pods. A Node wants no number of pods, so a static pod
// counts as one without an owner.
var nodeKind = schema.GroupKind{Kind: "Node"}

// chain returns the controllers above a pod. It reads them once for all pods of a
// controller. With an error it returns the controllers up to the unread one.
func (t *ownerTally) chain(p *corev1.Pod) (chain, error) {
	controller := metav1.GetControllerOfNoCopy(p)
	if controller == nil {
		return chain{}, nil
	}
	key := keyOfReference(controller)
	if c, ok := t.chains[key]; ok {
		return c, nil
	}
	var c chain
	err := ownerchain.Walk(p.OwnerReferences, func(kind schema.GroupVersionKind, ref *metav1.OwnerReference) ([]metav1.OwnerReference, error) {
		o, err := t.owner(kind, ref)
		if kind.GroupKind() != nodeKind {
			c.owners = append(c.owners, o)
		}
		c.above = append(c.above, budget.Owner{Group: kind.Group, Kind: kind.Kind, Name: ref.Name, UID: ref.UID, TerminatingOrGone: o.terminatingOrGone})
		return o.refs, err
	})
	if err == nil {
		t.chains[key] = c
	}
	return c, err
}

func (t *ownerTally) owner(kind schema.GroupVersionKind, ref *metav1.OwnerReference) (owner, error) {
	key := keyOfReference(ref)
	if o, ok := t.known[key]; ok {
		return o, nil
	}
	o := t.target
	if o.key() != key {
		var err error
		if o, err = t.get(kind.GroupKind(), kind.Version, ref.Name, ref.UID); err != nil {
			return owner{}, err
		}
	}
	o.uid = ref.UID
	t.known[key] = o
	t.limitResync(o)
	return o, nil
}

// get reads an owner. After a read that was not answered in time, mostly because of a conversion webhook,
// it reads no other owner of the kind.
func (t *ownerTally) get(kind schema.GroupKind, version, name string, uid types.UID) (owner, error) {
	if err := t.unanswered[kind]; err != nil {
		return owner{}, err
	}
	o, err := t.owners.get(t.ctx, kind, version, t.namespace, name, uid)
	if errors.Is(err, context.DeadlineExceeded) {
		t.unanswered[kind] = err
	}
	return o, err
}

// readTarget reads the target of a budget, unless that is a Knative Service.
func (t *ownerTally) readTarget(ref *v1alpha1.TargetRef, scope budget.Scope) (err error) {
	if _, ok := scope.KnativeService(); ok || ref == nil {
		return nil
	}
	kind := schema.GroupKind{Group: budget.GroupOf(ref.APIVersion), Kind: ref.Kind}
	t.target, err = t.owners.get(t.ctx, kind, "", t.namespace, ref.Name, "")
	return err
}

// retryAfter returns the time until a failed read is repeated. By ownerCacheTTL its error is not cached anymore.
func retryAfter(err error) time.Duration {
	if errors.Is(err, context.DeadlineExceeded) {
		return unwatchedResync
	}
	return ownerCacheTTL
}

// limitResync shortens resyncAfter for an owner that is not watched. An owner that was read earlier
// (fromCache) may have been scaled up since: its new pods caused this reconciliation, and may
// cause no further one.
func (t *ownerTally) limitResync(o owner) {
	switch {
	case watched[o.GroupKind]:
	case o.fromCache:
		t.resyncAfter = min(t.resyncAfter, ownerCacheTTL)
	default:
		t.resyncAfter = min(t.resyncAfter, unwatchedResync)
	}
}

// count adds a pod with the controllers above it.
func (t *ownerTally) count(p *corev1.Pod, owners []owner) {
	exists, ended := p.DeletionTimestamp == nil, workload.PodEnded(p)
	if exists && len(owners) > 0 {
		n := t.pods[owners[0].key()]
		if ended {
			n.ended++
		} else {
			n.active++
		}
		t.pods[owners[0].key()] = n
	}
	if ended {
		return
	}
	if len(owners) == 0 {
		if exists {
			t.orphans++
		}
		return
	}
	if budget.CountsAsAvailable(p) {
		t.direct[owners[0].key()]++
	}
	owners = t.upToTarget(owners)
	top := topmostWithReplicas(owners)
	a := t.owned[top.key()]
	if a == nil {
		a = newOwnedPods(top)
		t.owned[top.key()] = a
	}
	a.add(owners, exists)
}

// upToTarget leaves out the owners above the target: they also want pods that are not below it. Without a target, or if
// its replicas are unknown, all count.
func (t *ownerTally) upToTarget(owners []owner) []owner {
	if t.target.wanted == nil {
		return owners
	}
	for i, o := range owners {
		if o.key() == t.target.key() {
			return owners[:i+1]
		}
	}
	return owners
}

// countTarget counts the budget's target even if it has no pods. For a Knative Service these are the
// Deployments of the Revisions that have traffic, and for a selector those of selected. It returns the
// least number of pods that the target wants; nil if that depends on the owners of its pods.
func (t *ownerTally) countTarget(ref *v1alpha1.TargetRef, scope budget.Scope) (wanted *int32, err error) {
	if ref == nil {
		return nil, t.selected(scope)
	}
	if _, ok := scope.KnativeService(); ok {
		return new(int32), t.deployments(scope.RevisionsWithTraffic())
	}
	o := t.target
	t.limitResync(o)
	if t.owned[o.key()] == nil && !o.terminatingOrGone && o.wanted != nil {
		t.owned[o.key()] = newOwnedPods(o)
	}
	if !o.ofPods || o.wanted == nil {
		return nil, nil
	}
	return new(o.wants(t.pods)), nil
}

// selected counts the topmost Deployments and StatefulSets whose pod template a selector matches even if
// they have no pods.
func (t *ownerTally) selected(scope budget.Scope) error {
	count := func(workload metav1.Object) {
		o, _ := ownerFrom(workload)
		if !scope.Selects(o.podLabels) {
			return
		}
		t.selects = true
		if metav1.GetControllerOfNoCopy(workload) == nil && !o.terminatingOrGone && o.wanted != nil && t.owned[o.key()] == nil {
			t.owned[o.key()] = newOwnedPods(o)
		}
	}
	deployments, err := t.owners.deployments.Deployments(t.namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range deployments {
		count(d)
	}
	sets, err := t.owners.statefulSets.StatefulSets(t.namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	for _, s := range sets {
		count(s)
	}
	return nil
}

// total returns the sum of the replicas; an orphan counts as 1. If the replicas of an
// owner are unknown, unknown says why, and the owner's existing pods count.
func (t *ownerTally) total() (total int32, unknown string) {
	total = t.orphans
	for _, a := range t.owned {
		n, why := a.total(t.pods)
		total += n
		// Each reconciliation has to report the same reason.
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
	for key, available := range t.direct {
		if o := t.known[key]; exactReplicas[o.GroupKind] && !o.terminatingOrGone && o.wanted != nil {
			excess += max(available-*o.wanted, 0)
		}
	}
	return excess
}
