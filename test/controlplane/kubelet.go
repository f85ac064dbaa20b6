package controlplane

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// syncPeriod is how long a replaced container does not run.
const syncPeriod = 300 * time.Millisecond

// RunKubelet replaces the containers of running pods whose image changes, as a kubelet
// does: it stops the old container, then it starts the new one. Simulated nodes write the
// status of containers only once. It ends with the test, or when stop is called.
func RunKubelet(t *testing.T, kube kubernetes.Interface, namespace string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	stop = func() { cancel(); <-stopped }
	t.Cleanup(stop)
	go func() {
		defer close(stopped)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := syncPods(ctx, kube, namespace); err != nil && ctx.Err() == nil && !transient(err) {
				t.Errorf("sync pods: %v", err)
			}
		}, syncPeriod)
	}()
	return stop
}

func syncPods(ctx context.Context, kube kubernetes.Interface, namespace string) error {
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || !syncPod(p) {
			continue
		}
		if _, err := kube.CoreV1().Pods(namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil && !transient(err) {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}
	}
	return nil
}

// transient reports whether the same request may succeed in the next round. A denial is not
// transient: Breakwater must not deny a status of a kubelet.
func transient(err error) bool {
	return apierrs.IsConflict(err) || apierrs.IsNotFound(err) || apierrs.IsInternalError(err) ||
		apierrs.IsTooManyRequests(err) || apierrs.IsServerTimeout(err) || apierrs.IsTimeout(err)
}

// syncPod makes one step of each container and sets the condition Ready. It reports
// whether the status changed.
func syncPod(p *corev1.Pod) (changed bool) {
	ready := corev1.ConditionTrue
	for _, c := range p.Spec.Containers {
		i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		if i < 0 {
			continue // the simulated node has not started it
		}
		s := &p.Status.ContainerStatuses[i]
		switch id := "example.com/" + c.Image; {
		case s.ImageID == id && s.Ready:
			continue
		case s.ImageID != "" && s.Ready:
			s.Ready, s.State = false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
			ready = corev1.ConditionFalse
		default:
			s.Ready, s.Image, s.ImageID = true, c.Image, id
			s.ContainerID = fmt.Sprintf("containerd://%s-%d", p.Name, time.Now().UnixNano())
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}
		changed = true
	}
	for _, gate := range p.Spec.ReadinessGates {
		if conditionOf(p, gate.ConditionType).Status != corev1.ConditionTrue {
			ready = corev1.ConditionFalse
		}
	}
	if c := conditionOf(p, corev1.PodReady); c.Status != ready {
		c.Status, c.LastTransitionTime, changed = ready, metav1.Now(), true
	}
	return changed
}

// conditionOf returns a condition of a pod, or an empty one.
func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return &corev1.PodCondition{}
}
