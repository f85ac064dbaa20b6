package rollback

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
)

// blockingPodsInterval is the interval of deleting blocking pods of a StatefulSet.
const blockingPodsInterval = 5 * time.Second

// deleteBlockingPods deletes the pods of a StatefulSet that block a rollback by Breakwater, or a repair or rollback that was
// admitted during a suspension. The StatefulSet controller waits for a pod that is not Ready before it replaces any
// (https://github.com/kubernetes/kubernetes/issues/67250). A pod is deleted only if it has one of replacedVersions, is not
// Ready, and would not be created again with the same version, as below the user's partition: it would be deleted without
// end. It returns the time until the next check. The error of one deletion does not delay the others; the first is returned.
func (r *Reconciler) deleteBlockingPods(ctx context.Context, c *v1alpha1.ChangeWorkload, w *workload.Workload) (time.Duration, error) {
	if !w.Kind.IsStatefulSet() || w.Complete || w.PausedOrHeld() || !at(w, c) {
		return 0, nil
	}
	versions, reason, err := r.replacedVersions(c, w)
	if err != nil || len(versions) == 0 {
		return 0, err
	}
	all, err := releasefinder.Owned[*corev1.Pod](r.pods, w.UID)
	if err != nil {
		return 0, err
	}
	var failed error
	for _, p := range all {
		replaced := slices.ContainsFunc(versions, func(v replacedVersion) bool {
			return !p.CreationTimestamp.Before(&v.since) && r.finder.HasVersion(w, p, v.version)
		})
		if !replaced || p.DeletionTimestamp != nil || ready(w, p) || w.RecreatesSameRevision(p) {
			continue
		}
		if err := r.remove(ctx, p, w, reason); err != nil && failed == nil {
			failed = err
		}
	}
	return blockingPodsInterval, failed
}

// ready reports whether a pod is Ready. A pod whose containers are Ready counts if the kind updates pods in place: OpenKruise may
// have made it not Ready, to update it.
func ready(w *workload.Workload, p *corev1.Pod) bool {
	containers := p.Status.ContainerStatuses
	return podOf(p).Ready || w.Kind.UpdatesInPlace() && len(containers) > 0 &&
		!slices.ContainsFunc(containers, func(c corev1.ContainerStatus) bool { return !c.Ready })
}

// remove deletes a pod if it has not changed since it was read.
func (r *Reconciler) remove(ctx context.Context, p *corev1.Pod, w *workload.Workload, reason string) error {
	err := r.kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion},
	})
	if apierrs.IsNotFound(err) || apierrs.IsConflict(err) {
		return nil // it was deleted or has changed: check again
	} else if err != nil {
		return fmt.Errorf("delete pod %s/%s of a version that was replaced: %w", p.Namespace, p.Name, err)
	}
	logging.FromContext(ctx).Infow("deleted a pod that is not Ready, of a version that was replaced",
		"statefulset", w.Name, "pod", p.Name, "revision", p.Labels[appsv1.ControllerRevisionHashLabelKey])
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeNormal, reason,
		"deleted pod %s: it has a version that was replaced, is not Ready, and blocked the rollout", p.Name)
	return nil
}
