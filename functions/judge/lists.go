package judge

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// computedKey annotates a trimmed ReplicaSet with the version of its template.
const computedKey = "computed"

// replicaSets returns the ReplicaSets that the owners control, with the fields by which a release is found.
func (f *function) replicaSets(ctx context.Context, namespace string, owners []types.UID) ([]*appsv1.ReplicaSet, error) {
	sets, err := pagedlist.Trimmed(ctx, f.Kube.AppsV1().ReplicaSets(namespace).List, metav1.ListOptions{}, pagedlist.MaxKept, func(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
		if !isControlledBy(set, owners...) {
			return nil
		}
		trimmed := &appsv1.ReplicaSet{ObjectMeta: trimMeta(set.ObjectMeta)}
		trimmed.Annotations = map[string]string{computedKey: savedtemplate.VersionOf(set)}
		for _, key := range []string{v1alpha1.VersionKey, v1alpha1.AttemptAnnotation, savedtemplate.RevisionAnnotation, savedtemplate.RolloutRevisionAnnotation} {
			if value, ok := set.Annotations[key]; ok {
				trimmed.Annotations[key] = value
			}
		}
		return trimmed
	})
	if err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	return sets, nil
}

// pods returns the pods of a namespace that a selector of labels selects, with the fields by which a release is found.
func (f *function) pods(ctx context.Context, namespace, selector string) ([]*corev1.Pod, error) {
	pods, err := pagedlist.Trimmed(ctx, f.Kube.CoreV1().Pods(namespace).List, metav1.ListOptions{LabelSelector: selector}, pagedlist.MaxKept, func(p *corev1.Pod) *corev1.Pod {
		trimmed := &corev1.Pod{ObjectMeta: trimMeta(p.ObjectMeta)}
		if hash, ok := p.Labels[appsv1.ControllerRevisionHashLabelKey]; ok {
			trimmed.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: hash}
		}
		for _, c := range p.Status.ContainerStatuses {
			trimmed.Status.ContainerStatuses = append(trimmed.Status.ContainerStatuses, corev1.ContainerStatus{
				State: trimState(c.State), LastTerminationState: trimState(c.LastTerminationState)})
		}
		return trimmed
	})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return pods, nil
}

func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, UID: m.UID, CreationTimestamp: m.CreationTimestamp, OwnerReferences: m.OwnerReferences}
}

// trimState keeps when a container started.
func trimState(s corev1.ContainerState) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: startOfContainer(s)}}
}

// revisionsOf returns the ControllerRevisions of a workload without their templates, and with their versions if the release
// follows one that failed. Saved templates have no controller.
func (f *function) revisionsOf(ctx context.Context, parent *v1alpha1.ChangeWorkload, withVersions bool) (all []savedtemplate.Template, err error) {
	ref := parent.Spec.WorkloadRef
	w := &workload.Workload{
		Kind: workload.Kind{GroupVersionKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)}, ObjectMeta: metav1.ObjectMeta{UID: ref.UID},
	}
	kept := 0
	err = pagedlist.Each(ctx, f.Kube.AppsV1().ControllerRevisions(parent.Namespace).List, metav1.ListOptions{}, func(r *appsv1.ControllerRevision) error {
		if !isControlledBy(r, ref.UID) {
			return nil
		}
		found := []savedtemplate.Template{{Name: r.Name, Revision: r.Revision}}
		if withVersions {
			var err error
			if found, err = savedtemplate.FromControllerRevisions([]appsv1.ControllerRevision{*r}, w); err != nil {
				return err
			}
		}
		for _, t := range found {
			if kept += len(t.Name) + len(t.Recorded); kept > pagedlist.MaxKept {
				return fmt.Errorf("the names and versions of the first %d of them have more than %d MiB, the limit", len(all)+1, pagedlist.MaxKept>>20)
			}
			t.Raw = nil
			all = append(all, t)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list ControllerRevisions: %w", err)
	}
	return all, nil
}

// ownersOfReplicaSets returns the UIDs of the objects that own the ReplicaSets of a workload: it
// itself or, for a Knative Service, the Deployments of its Revisions.
func (f *function) ownersOfReplicaSets(ctx context.Context, parent *v1alpha1.ChangeWorkload) (owners []types.UID, err error) {
	ref := parent.Spec.WorkloadRef
	if !isKnativeService(ref) {
		return []types.UID{ref.UID}, nil
	}
	err = pagedlist.Each(ctx, f.Kube.AppsV1().Deployments(parent.Namespace).List, metav1.ListOptions{}, func(d *appsv1.Deployment) error {
		if _, uid, ok := workload.KnativeServiceOf(d); ok && uid == ref.UID {
			owners = append(owners, d.UID)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	return owners, nil
}
