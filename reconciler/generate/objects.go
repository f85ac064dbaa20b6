package generate

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/policy/generate"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// meta is that of what is generated. Without what the API server fills in, and
// without a status: what is not applied stays as it is.
type meta struct {
	Name            string                  `json:"name"`
	Namespace       string                  `json:"namespace"`
	Labels          map[string]string       `json:"labels"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// document is what is applied.
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
}

func (w *workload) meta() meta {
	return meta{
		Name: w.nameOf(), Namespace: w.GetNamespace(),
		Labels: map[string]string{"app.kubernetes.io/managed-by": "breakwater"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: w.kind, Name: w.GetName(), UID: w.GetUID(), Controller: ptr.To(true),
		}},
	}
}

// pub is the PodUnavailableBudget of a workload: by its name.
func (r *Reconciler) pub(w *workload) target {
	ref := &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: w.kind, Name: w.GetName()}
	client := r.policies.PolicyV1alpha1().PodUnavailableBudgets(w.GetNamespace())
	t := target{
		same: func(*generate.Limits) bool { return false },
		object: func(l *generate.Limits) any {
			return document{v1alpha1.SchemeGroupVersion.String(), "PodUnavailableBudget", w.meta(),
				spec{TargetRef: ref, MaxUnavailable: l.MaxUnavailable, MinAvailable: l.MinAvailable}}
		},
		apply: func(ctx context.Context, raw []byte, o metav1.PatchOptions) error {
			_, err := client.Patch(ctx, w.nameOf(), types.ApplyPatchType, raw, o)
			return err
		},
		remove: func(ctx context.Context, o metav1.DeleteOptions) error { return client.Delete(ctx, w.nameOf(), o) },
	}
	b, err := r.budgets.PodUnavailableBudgets(w.GetNamespace()).Get(w.nameOf())
	if apierrs.IsNotFound(err) {
		return t
	} else if err != nil {
		return target{err: err}
	}
	t.exists = b
	t.same = func(l *generate.Limits) bool {
		return equality.Semantic.DeepEqual(b.Spec.TargetRef, ref) &&
			equality.Semantic.DeepEqual(l, &generate.Limits{MaxUnavailable: b.Spec.MaxUnavailable, MinAvailable: b.Spec.MinAvailable})
	}
	return t
}

// pdb is the PodDisruptionBudget of a workload: by its selector.
func (r *Reconciler) pdb(w *workload) target {
	client := r.kube.PolicyV1().PodDisruptionBudgets(w.GetNamespace())
	t := target{
		same: func(*generate.Limits) bool { return false },
		object: func(l *generate.Limits) any {
			return document{policyv1.SchemeGroupVersion.String(), "PodDisruptionBudget", w.meta(),
				spec{Selector: w.selector, MaxUnavailable: l.MaxUnavailable, MinAvailable: l.MinAvailable}}
		},
		apply: func(ctx context.Context, raw []byte, o metav1.PatchOptions) error {
			_, err := client.Patch(ctx, w.nameOf(), types.ApplyPatchType, raw, o)
			return err
		},
		remove: func(ctx context.Context, o metav1.DeleteOptions) error { return client.Delete(ctx, w.nameOf(), o) },
	}
	b, err := r.pdbs.PodDisruptionBudgets(w.GetNamespace()).Get(w.nameOf())
	if apierrs.IsNotFound(err) {
		return t
	} else if err != nil {
		return target{err: err}
	}
	t.exists = b
	t.same = func(l *generate.Limits) bool {
		return equality.Semantic.DeepEqual(b.Spec.Selector, w.selector) &&
			equality.Semantic.DeepEqual(l, &generate.Limits{MaxUnavailable: b.Spec.MaxUnavailable, MinAvailable: b.Spec.MinAvailable})
	}
	return t
}
