// Package pod labels finished pods: a pod of a release after the baseline gets the
// label operate-finished once it is Ready, and the event pod.finished is sent.
//
// The label and the event are for people, tools and the server. They are rate limited. No check
// waits for them: the ChangeWorkload reconciler claims pods that are Ready. The label only
// records that a pod was Ready before.
package pod

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	reconcilerpod "knative.dev/pkg/client/injection/kube/reconciler/core/v1/pod"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// fieldManager owns the label.
const fieldManager = "controller"

// Reconciler labels finished pods.
type Reconciler struct {
	kube   kubernetes.Interface
	inputs inputs
	labels *labelLimiter
	sender events.Sender
	// finished counts the pods that were labeled.
	finished metrics.Counter
}

var _ reconcilerpod.Interface = (*Reconciler)(nil)

// ReconcileKind labels a pod that is finished.
func (r *Reconciler) ReconcileKind(ctx context.Context, p *corev1.Pod) reconciler.Event {
	in, of := r.inputs.of(p)
	if d := Decide(in); !d.Label {
		logging.FromContext(ctx).Debugw("the pod is not labeled", "reason", d.Reason)
		return nil
	}
	if delay := r.labels.take(ownerUID(p), r.inputs.rollingOut(p.Namespace, of)); delay > 0 {
		return controller.NewRequeueAfter(delay)
	}
	if labeled, err := r.label(ctx, p); err != nil || !labeled {
		return err
	}
	r.finished.Add(ctx, 1)
	event, err := events.New(finished(p, of, in.Release))
	if err != nil {
		// The label is written, so a retry would not send the event.
		return controller.NewPermanentError(err)
	}
	r.sender.Send(ctx, event)
	return nil
}

// ownerUID is the key of a pod in labelLimiter: the UID of its controller.
func ownerUID(p *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
		return owner.UID
	}
	return ""
}

// label labels the pod, and returns false if the pod was deleted. With the UID in the patch, a
// later pod of the same name causes a conflict.
func (r *Reconciler) label(ctx context.Context, p *corev1.Pod) (bool, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":    p.UID,
		"labels": map[string]string{v1alpha1.FinishedLabel: v1alpha1.FinishedValue},
	}})
	if err != nil {
		return false, controller.NewPermanentError(err)
	}
	_, err = r.kube.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrs.IsNotFound(err), apierrs.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("label pod %s/%s as finished: %w", p.Namespace, p.Name, err)
	}
	return true, nil
}

// finished is the data of the event.
func finished(p *corev1.Pod, of v1alpha1.WorkloadRef, release v1alpha1.Release) events.PodFinished {
	return events.PodFinished{
		Namespace: p.Namespace, Pod: p.Name, PodUID: p.UID,
		Workload: events.Workload{APIVersion: of.APIVersion, Kind: of.Kind, Name: of.Name},
		Version:  release.Version, Attempt: release.Attempt,
	}
}
