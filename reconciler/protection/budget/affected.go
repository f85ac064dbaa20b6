package budget

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// byPods is the index of budgets by a property of the pods that they may cover: a
// label, or an owner.
const byPods = "breakwater.dev/by-pods"

// podIndexers are the indexers of budgets that affectedBudgets reads.
var podIndexers = cache.Indexers{byPods: podKeys}

// podKeys returns the keys of a budget in the index.
func podKeys(obj any) ([]string, error) {
	b, ok := obj.(*v1alpha1.PodUnavailableBudget)
	switch {
	case !ok:
		return nil, fmt.Errorf("index budgets: unexpected %T", obj)
	case b.Spec.TargetRef != nil:
		ref := b.Spec.TargetRef
		return []string{
			anyTarget(b.Namespace),
			targetKey(b.Namespace, schema.GroupKind{Group: budget.GroupOf(ref.APIVersion), Kind: ref.Kind}, ref.Name),
		}, nil
	case b.Spec.Selector == nil:
		return nil, nil
	}
	// A pod must have all labels of the selector, so an index by one of them finds the
	// budget.
	first := ""
	for key := range b.Spec.Selector.MatchLabels {
		if first == "" || key < first {
			first = key
		}
	}
	if first == "" {
		return []string{anyLabels(b.Namespace)}, nil
	}
	return []string{labelKey(b.Namespace, first, b.Spec.Selector.MatchLabels[first])}, nil
}

func anyLabels(namespace string) string { return "labels " + namespace }

func anyTarget(namespace string) string { return "targets " + namespace }

func labelKey(namespace, key, value string) string {
	return "label " + namespace + " " + key + "=" + value
}

func targetKey(namespace string, kind schema.GroupKind, name string) string {
	return "target " + namespace + " " + kind.String() + " " + name
}

// byController is the index of pods by the UID of their controller.
const byController = "breakwater.dev/by-controller"

// controllerIndexers are the indexers of pods that affectedBudgets reads.
var controllerIndexers = cache.Indexers{byController: func(obj any) ([]string, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("index pods: unexpected %T", obj)
	}
	if controller := metav1.GetControllerOfNoCopy(p); controller != nil {
		return []string{string(controller.UID)}, nil
	}
	return nil, nil
}}

// affectedBudgets finds the budgets that an event of a pod or a workload may change.
type affectedBudgets struct {
	// budgets has podIndexers, pods controllerIndexers.
	budgets, pods cache.Indexer
	owners        *owners
}

// covering returns the budgets that may cover the pod. It reads caches only: if they
// do not have every owner of the pod, it returns each budget with a target. The owner's
// own event enqueues the budgets later.
func (w affectedBudgets) covering(p *corev1.Pod) []*v1alpha1.PodUnavailableBudget {
	keys := []string{anyLabels(p.Namespace)}
	for key, value := range p.Labels {
		keys = append(keys, labelKey(p.Namespace, key, value))
	}
	if targets, complete := w.targets(p.Namespace, p.OwnerReferences); complete {
		keys = append(keys, targets...)
	} else {
		keys = append(keys, anyTarget(p.Namespace))
	}
	return slices.DeleteFunc(w.indexed(keys), func(b *v1alpha1.PodUnavailableBudget) bool {
		scope, err := budget.ScopeOf(b)
		return err != nil || !scope.MayCover(p)
	})
}

// affectedBy returns the budgets whose status a change of a workload of a watched kind may
// affect: budgets whose target is the workload or an owner above it, and budgets that
// cover pods below it or select its pod template.
func (w affectedBudgets) affectedBy(workload owner, namespace string) []*v1alpha1.PodUnavailableBudget {
	keys := []string{targetKey(namespace, workload.GroupKind, workload.name)}
	if targets, complete := w.targets(namespace, workload.refs); complete {
		keys = append(keys, targets...)
	} else {
		keys = append(keys, anyTarget(namespace))
	}
	found := w.indexed(keys)
	if workload.podLabels != nil {
		found = append(found, w.covering(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: workload.podLabels}})...)
	}
	for _, p := range w.podsBelow(workload, namespace) {
		found = append(found, w.covering(p)...)
	}
	return found
}

// ofService returns the budgets whose target is a Knative Service.
func (w affectedBudgets) ofService(namespace, name string) []*v1alpha1.PodUnavailableBudget {
	return w.indexed([]string{targetKey(namespace, knativeServiceKind, name)})
}

// podsBelow returns the cached pods of a workload, or of its ReplicaSets.
func (w affectedBudgets) podsBelow(workload owner, namespace string) []*corev1.Pod {
	controllers := []types.UID{workload.uid}
	if workload.Kind == "Deployment" {
		sets, err := w.owners.replicaSets.ReplicaSets(namespace).List(labels.Everything())
		if err != nil {
			return nil // a cache lister returns no error
		}
		for _, s := range sets {
			if controller := metav1.GetControllerOfNoCopy(s); controller != nil && controller.UID == workload.uid {
				controllers = append(controllers, s.UID)
			}
		}
	}
	var pods []*corev1.Pod
	for _, uid := range controllers {
		all, err := w.pods.ByIndex(byController, string(uid))
		if err != nil {
			return nil // impossible: the index exists
		}
		for _, obj := range all {
			if p, ok := obj.(*corev1.Pod); ok {
				pods = append(pods, p)
			}
		}
	}
	return pods
}

// indexed returns the budgets with one of the keys.
func (w affectedBudgets) indexed(keys []string) []*v1alpha1.PodUnavailableBudget {
	var found []*v1alpha1.PodUnavailableBudget
	for _, key := range keys {
		all, err := w.budgets.ByIndex(byPods, key)
		if err != nil {
			return found // impossible: the index exists
		}
		for _, obj := range all {
			if b, ok := obj.(*v1alpha1.PodUnavailableBudget); ok {
				found = append(found, b)
			}
		}
	}
	return found
}

// ofWorkload returns a handler of the events of workloads. It calls changed with the old and
// the new workload if a field that budgets need has changed. Other updates, such as those of
// the status for each pod, enqueue nothing: the events of the pods enqueue their budgets.
func ofWorkload(changed func(workload owner, namespace string)) cache.ResourceEventHandlerFuncs {
	pass := func(obj any) {
		if o, ok := wiring.Object[metav1.Object](obj); ok {
			workload, _ := ownerFrom(o)
			changed(workload, o.GetNamespace())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: pass, DeleteFunc: pass,
		UpdateFunc: func(before, after any) {
			was, _ := ownerFrom(before)
			is, _ := ownerFrom(after)
			if !reflect.DeepEqual(was, is) {
				pass(before)
				pass(after)
			}
		},
	}
}

// targets returns the keys of the owners above an object with these references; false if
// a cache does not have one of them.
func (w affectedBudgets) targets(namespace string, refs []metav1.OwnerReference) (keys []string, complete bool) {
	err := ownerchain.Walk(refs, func(kind schema.GroupVersionKind, ref *metav1.OwnerReference) ([]metav1.OwnerReference, error) {
		found, ok := w.owners.cached(kind.GroupKind(), namespace, ref.Name)
		if !ok || found.uid != ref.UID {
			return nil, errNotCached
		}
		keys = append(keys, targetKey(namespace, kind.GroupKind(), ref.Name))
		return found.refs, nil
	})
	return keys, err == nil
}

var errNotCached = errors.New("not in the cache")
