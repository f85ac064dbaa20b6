package budget

import (
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// byPods is the index of budgets by what their pods have: a label, or an owner.
const byPods = "breakwater.dev/by-pods"

// podIndexers are the indexers of budgets that wakeUps reads.
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
	// A pod needs all the labels, so one is enough to find the budget.
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

// wakeUps finds the budgets that an event of a pod may change.
type wakeUps struct {
	// budgets has podIndexers.
	budgets cache.Indexer
	owners  *owners
}

// covering returns the budgets that may cover the pod. It reads caches only: if they
// do not have every owner of the pod, it returns each budget with a target. An owner
// that changes later enqueues the budgets itself.
func (w wakeUps) covering(p *corev1.Pod) []*v1alpha1.PodUnavailableBudget {
	keys := []string{anyLabels(p.Namespace)}
	for key, value := range p.Labels {
		keys = append(keys, labelKey(p.Namespace, key, value))
	}
	if targets, complete := w.targets(p); complete {
		keys = append(keys, targets...)
	} else {
		keys = append(keys, anyTarget(p.Namespace))
	}
	var found []*v1alpha1.PodUnavailableBudget
	for _, key := range keys {
		all, err := w.budgets.ByIndex(byPods, key)
		if err != nil {
			return found // the index exists
		}
		for _, obj := range all {
			b, ok := obj.(*v1alpha1.PodUnavailableBudget)
			if !ok {
				continue
			}
			if scope, err := budget.ScopeOf(b); err == nil && scope.MayCover(p) {
				found = append(found, b)
			}
		}
	}
	return found
}

// ofWorkload handles the events of workloads: it enqueues the budgets of the namespace
// if what budgets need of the workload changes. The status of a workload is written for
// each of its pods, whose own events enqueue their budgets.
func ofWorkload(enqueue func(namespace string)) cache.ResourceEventHandlerFuncs {
	changed := func(obj any) {
		if o, ok := wiring.Object[metav1.Object](obj); ok {
			enqueue(o.GetNamespace())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed,
		UpdateFunc: func(before, after any) {
			was, _ := ownerFrom(before)
			is, _ := ownerFrom(after)
			if !reflect.DeepEqual(was, is) {
				changed(after)
			}
		},
	}
}

// targets returns the keys of the owners above a pod; false if a cache does not have
// one of them.
func (w wakeUps) targets(p *corev1.Pod) (keys []string, complete bool) {
	err := ownerchain.Walk(p.OwnerReferences, func(kind schema.GroupVersionKind, ref *metav1.OwnerReference) ([]metav1.OwnerReference, error) {
		found, ok := w.owners.cached(kind.GroupKind(), p.Namespace, ref.Name)
		if !ok || found.uid != ref.UID {
			return nil, errNotCached
		}
		keys = append(keys, targetKey(p.Namespace, kind.GroupKind(), ref.Name))
		return found.refs, nil
	})
	return keys, err == nil
}

var errNotCached = errors.New("not in the cache")
