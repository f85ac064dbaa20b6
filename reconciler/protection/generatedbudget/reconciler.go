// Package generatedbudget reconciles the budgets that annotations of workloads and
// namespaces ask for. A generated budget is owned by its workload, follows it, and is
// deleted with it. Its limit, its pod selection and unhealthyPodEvictionPolicy are restored when edited; other
// changes, such as spec.shadow, stay. Package internal/generatedbudget decides the
// limits.
package generatedbudget

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
)

// Reasons of Events on a workload.
const (
	// ReasonGeneratedBudgetInvalid: an annotation is invalid.
	ReasonGeneratedBudgetInvalid = "GeneratedBudgetInvalid"
	// ReasonGeneratedBudgetNameTaken: another object has the name.
	ReasonGeneratedBudgetNameTaken = "GeneratedBudgetNameTaken"
	// ReasonGeneratedBudgetOverlaps: the generated budget was deleted, because another PodDisruptionBudget selects the pods.
	ReasonGeneratedBudgetOverlaps = "GeneratedBudgetOverlaps"
)

// managedByLabel has the value managedByValue on a generated budget.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByValue = "breakwater"
)

// fieldManager owns the fields of generated budgets.
const fieldManager = "protection-controller"

// Reconciler reconciles generated budgets.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	workloads  workloads
	namespaces corelisters.NamespaceLister
	budgets    listers.PodUnavailableBudgetLister
	pdbs       policylisters.PodDisruptionBudgetLister
	kube       kubernetes.Interface
	policies   versioned.Interface
	recorder   record.EventRecorder
	// defaults returns the cluster's default limits.
	defaults func() generatedbudget.Limits
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile reconciles the generated budgets of one workload.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	k, namespace, name, err := parseKey(key)
	if err != nil {
		return controller.NewPermanentError(err)
	}
	if !r.IsLeaderFor(keyOf(k, namespace, name)) {
		return controller.NewSkipKey(key)
	}
	w, err := r.workloads.get(k, namespace, name)
	if apierrs.IsNotFound(err) || err == nil && w.GetDeletionTimestamp() != nil {
		return nil // the garbage collector deletes generated budgets
	} else if err != nil {
		return fmt.Errorf("read %s %s: %w", k.id, name, err)
	}
	ns, err := r.namespaces.Get(namespace)
	if apierrs.IsNotFound(err) || err == nil && (ns.DeletionTimestamp != nil || changev1alpha1.ExcludedNamespace(namespace)) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	if w.ofRevision {
		return nil // its Knative Service has the generated budgets
	}
	return errors.Join(
		r.reconcileBudget(ctx, w, ns, generatedbudget.PUBAnnotation, r.pub(w)),
		r.reconcileBudget(ctx, w, ns, generatedbudget.PDBAnnotation, r.pdb(w)),
	)
}

// generated reads and writes a generated budget of one kind.
type generated struct {
	// existing is the present object; nil for none.
	existing metav1.Object
	err      error
	// matches reports whether it has the wanted selection of pods and these limits.
	matches func(*generatedbudget.Limits) bool
	// write creates it, or restores what it has to have.
	write  func(context.Context, *generatedbudget.Limits) error
	remove func(context.Context, metav1.DeleteOptions) error
	// overlapping returns the name of another budget beside which there is no generated one; empty for none.
	overlapping func() string
}

func (g generated) ownedBy(w *workload) bool {
	return g.existing != nil && metav1.IsControlledBy(g.existing, w)
}

// isOrphaned reports whether the present budget was generated, and its workload was deleted with
// --cascade=orphan, which removes the owners of the budget.
func (g generated) isOrphaned() bool {
	return g.existing != nil && len(g.existing.GetOwnerReferences()) == 0 && g.existing.GetLabels()[managedByLabel] == managedByValue
}

// delete deletes the present budget.
func (g generated) delete(ctx context.Context) error {
	uid := g.existing.GetUID()
	if err := g.remove(ctx, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil && !apierrs.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", g.existing.GetName(), err)
	}
	return nil
}

// reconcileBudget reconciles the budget of one annotation.
func (r *Reconciler) reconcileBudget(ctx context.Context, w *workload, ns *corev1.Namespace, annotation string, g generated) error {
	if g.err != nil {
		return g.err
	}
	limits, err := generatedbudget.Decide(annotation, w.annotations(ns), w.strategyMaxUnavailable, r.defaults())
	if err != nil {
		r.recorder.Event(reference(w), corev1.EventTypeWarning, ReasonGeneratedBudgetInvalid, err.Error())
		return nil // the present budget stays until the annotation is valid
	}
	owned := g.ownedBy(w)
	if limits != nil && !g.isOrphaned() { // an orphan is adopted first: the controller may delete only budgets with an owner
		if other := g.overlapping(); other != "" {
			if !owned {
				return nil
			}
			if err := g.delete(ctx); err != nil {
				return err
			}
			r.recorder.Event(reference(w), corev1.EventTypeNormal, ReasonGeneratedBudgetOverlaps,
				"the generated PodDisruptionBudget was deleted: PodDisruptionBudget "+other+" selects the pods, and Kubernetes evicts no pod that two select")
			return nil
		}
	}
	switch {
	case limits == nil && owned:
		return g.delete(ctx)
	case limits == nil, owned && g.matches(limits):
		return nil
	case g.existing != nil && !owned && !g.isOrphaned():
		r.recorder.Event(reference(w), corev1.EventTypeWarning, ReasonGeneratedBudgetNameTaken,
			"annotation "+annotation+" generates nothing: another object has the name "+w.budgetName())
		return nil
	}
	return g.write(ctx, limits)
}

func reference(w *workload) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: w.apiVersion, Kind: w.kind.kind, Namespace: w.GetNamespace(), Name: w.GetName(), UID: w.GetUID()}
}
