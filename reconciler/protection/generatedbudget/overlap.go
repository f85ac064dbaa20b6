package generatedbudget

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// overlapping returns the first name of a PodDisruptionBudget because of which the workload has no generated
// one; empty if there is none. Kubernetes evicts no pod that two select.
func (r *Reconciler) overlapping(w *workload) string {
	all, _ := r.pdbs.PodDisruptionBudgets(w.GetNamespace()).List(labels.Everything()) // cache listers return no error
	first := ""
	for _, b := range all {
		if (first == "" || b.Name < first) && b.Name != w.budgetName() && selects(b.Spec.Selector, w) && !r.isRemovedFor(w, b) {
			first = b.Name
		}
	}
	return first
}

// isRemovedFor reports whether a PodDisruptionBudget that selects the pods of the workload is a generated one that
// is removed in favor of that of the workload: each selects the pods of the other, and its name is the later one.
func (r *Reconciler) isRemovedFor(w *workload, b *policyv1.PodDisruptionBudget) bool {
	owner := metav1.GetControllerOfNoCopy(b)
	if owner == nil || b.Name < w.budgetName() {
		return false
	}
	k, ok := kindOf(owner.APIVersion, owner.Kind)
	if !ok {
		return false
	}
	other, err := r.workloads.get(k, b.Namespace, owner.Name)
	return err == nil && b.Name == other.budgetName() && selects(w.selector, other)
}

// selects reports whether the selector of a PodDisruptionBudget selects the pods of a workload.
func selects(selector *metav1.LabelSelector, w *workload) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(w.podLabels))
}

// onPDB enqueues the workloads whose pods a PodDisruptionBudget selects when it is created or deleted, or
// when its spec changes.
func (r *Reconciler) onPDB(enqueue func(types.NamespacedName)) cache.ResourceEventHandler {
	changed := func(obj any) {
		b, ok := wiring.Object[*policyv1.PodDisruptionBudget](obj)
		if !ok {
			return
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			return // it selects no pods
		}
		_ = r.workloads.enqueueAll(b.Namespace, func(key types.NamespacedName) { // cache listers return no error
			k, namespace, name, _ := parseKey(key.String()) // a valid key
			if w, err := r.workloads.get(k, namespace, name); err == nil && selector.Matches(labels.Set(w.podLabels)) {
				enqueue(key)
			}
		})
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(before, after any) {
		a, aOK := before.(*policyv1.PodDisruptionBudget)
		b, bOK := after.(*policyv1.PodDisruptionBudget)
		if aOK && bOK && a.Generation != b.Generation {
			changed(before)
			changed(after)
		}
	}}
}
