package generatedbudget

import (
	"context"
	"encoding/json"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
)

// meta is the metadata that is applied. It omits fields that the API server sets, and
// there is no status, so that server-side apply does not own them.
type meta struct {
	Name            string                  `json:"name"`
	Namespace       string                  `json:"namespace"`
	Labels          map[string]string       `json:"labels"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// document is the object that is applied.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   meta   `json:"metadata"`
	Spec       spec   `json:"spec"`
}

type spec struct {
	TargetRef      *v1alpha1.TargetRef   `json:"targetRef,omitempty"`
	Selector       *metav1.LabelSelector `json:"selector,omitempty"`
	MaxUnavailable *intstr.IntOrString   `json:"maxUnavailable,omitempty"`
	MinAvailable   *intstr.IntOrString   `json:"minAvailable,omitempty"`
	// UnhealthyPodEvictionPolicy is set for a PodDisruptionBudget only.
	UnhealthyPodEvictionPolicy *policyv1.UnhealthyPodEvictionPolicyType `json:"unhealthyPodEvictionPolicy,omitempty"`
}

// hasFieldsBeyond reports whether the spec has a field that the wanted one lacks. Server-side apply
// keeps such a field if another manager owns it, and a budget with both limits, or with both pod
// selections, is invalid.
func (s spec) hasFieldsBeyond(wanted spec) bool {
	return s.Selector != nil && wanted.Selector == nil ||
		s.MaxUnavailable != nil && wanted.MaxUnavailable == nil || s.MinAvailable != nil && wanted.MinAvailable == nil
}

// replacement is the merge patch that restores an existing budget.
type replacement struct {
	Metadata struct {
		UID    types.UID         `json:"uid"`
		Labels map[string]string `json:"labels"`
		// OwnerReferences is set only for a budget without owners: a merge patch replaces the list.
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	} `json:"metadata"`
	Spec replacedSpec `json:"spec"`
}

// replacedSpec is a spec whose unset fields are encoded as null, so that a merge patch removes them.
type replacedSpec struct {
	TargetRef      *v1alpha1.TargetRef   `json:"targetRef"`
	Selector       *metav1.LabelSelector `json:"selector"`
	MaxUnavailable *intstr.IntOrString   `json:"maxUnavailable"`
	MinAvailable   *intstr.IntOrString   `json:"minAvailable"`
	// UnhealthyPodEvictionPolicy does not exist in a PodUnavailableBudget.
	UnhealthyPodEvictionPolicy *policyv1.UnhealthyPodEvictionPolicyType `json:"unhealthyPodEvictionPolicy,omitempty"`
}

func (w *workload) meta() meta {
	return meta{
		Name: w.budgetName(), Namespace: w.GetNamespace(),
		Labels: map[string]string{managedByLabel: managedByValue},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: w.apiVersion, Kind: w.kind.kind, Name: w.GetName(), UID: w.GetUID(), Controller: new(true),
		}},
	}
}

// budgets has the methods that the clients of both kinds of budget share.
type budgets[T metav1.Object] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, raw []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// generatedOf returns the generated budget of a kind. Template has the pod selection;
// specOf returns the spec of an existing budget.
func generatedOf[T metav1.Object](w *workload, client budgets[T], get func(name string) (T, error), template document, specOf func(T) spec) generated {
	template.Metadata = w.meta()
	wanted := func(l *generatedbudget.Limits) document {
		d := template
		d.Spec.MaxUnavailable, d.Spec.MinAvailable = l.MaxUnavailable, l.MinAvailable
		return d
	}
	patch := func(ctx context.Context, kind types.PatchType, body any, o metav1.PatchOptions) error {
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode %s: %w", w.budgetName(), err)
		}
		if _, err := client.Patch(ctx, w.budgetName(), kind, raw, o); err != nil {
			return fmt.Errorf("patch %s: %w", w.budgetName(), err)
		}
		return nil
	}
	apply := func(ctx context.Context, l *generatedbudget.Limits) error {
		return patch(ctx, types.ApplyPatchType, wanted(l), metav1.PatchOptions{FieldManager: fieldManager, Force: new(true)})
	}
	g := generated{
		matches:     func(*generatedbudget.Limits) bool { return false },
		write:       apply,
		remove:      func(ctx context.Context, o metav1.DeleteOptions) error { return client.Delete(ctx, w.budgetName(), o) },
		overlapping: func() string { return "" }, // a pod may have several PodUnavailableBudgets
	}
	existing, err := get(w.budgetName())
	if apierrs.IsNotFound(err) {
		return g
	} else if err != nil {
		return generated{err: err}
	}
	g.existing = existing
	g.matches = func(l *generatedbudget.Limits) bool {
		return equality.Semantic.DeepEqual(specOf(existing), wanted(l).Spec)
	}
	g.write = func(ctx context.Context, l *generatedbudget.Limits) error {
		if !specOf(existing).hasFieldsBeyond(wanted(l).Spec) {
			return apply(ctx, l)
		}
		var r replacement
		r.Metadata.UID, r.Metadata.Labels, r.Spec = existing.GetUID(), template.Metadata.Labels, replacedSpec(wanted(l).Spec)
		if g.isOrphaned() {
			r.Metadata.OwnerReferences = template.Metadata.OwnerReferences
		}
		return patch(ctx, types.MergePatchType, r, metav1.PatchOptions{FieldManager: fieldManager})
	}
	return g
}

// pub returns the generated PodUnavailableBudget, which selects by targetRef.
func (r *Reconciler) pub(w *workload) generated {
	return generatedOf(w, r.policies.PolicyV1alpha1().PodUnavailableBudgets(w.GetNamespace()), r.budgets.PodUnavailableBudgets(w.GetNamespace()).Get,
		document{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodUnavailableBudget",
			Spec: spec{TargetRef: &v1alpha1.TargetRef{APIVersion: w.apiVersion, Kind: w.kind.kind, Name: w.GetName()}},
		},
		func(b *v1alpha1.PodUnavailableBudget) spec {
			return spec{TargetRef: b.Spec.TargetRef, Selector: b.Spec.Selector.LabelSelector(), MaxUnavailable: b.Spec.MaxUnavailable, MinAvailable: b.Spec.MinAvailable}
		})
}

// pdb returns the generated PodDisruptionBudget, which selects by labels. It allows the eviction of pods that
// are not Ready, as a PodUnavailableBudget does: otherwise a drain waits for a workload that does not start.
func (r *Reconciler) pdb(w *workload) generated {
	g := generatedOf(w, r.kube.PolicyV1().PodDisruptionBudgets(w.GetNamespace()), r.pdbs.PodDisruptionBudgets(w.GetNamespace()).Get,
		document{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget",
			Spec: spec{Selector: w.selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)}},
		func(b *policyv1.PodDisruptionBudget) spec {
			return spec{Selector: b.Spec.Selector, MaxUnavailable: b.Spec.MaxUnavailable, MinAvailable: b.Spec.MinAvailable,
				UnhealthyPodEvictionPolicy: b.Spec.UnhealthyPodEvictionPolicy}
		})
	g.overlapping = func() string { return r.overlapping(w) }
	return g
}
