//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// keepPods gives each pod of the namespace a finalizer. A rollout of a StatefulSet,
// a DaemonSet or a CloneSet of cloneSetController replaces no pod that has it, so it
// is in progress until the test removes the finalizers.
func (n *namespace) keepPods(t *testing.T) {
	t.Helper()
	if _, err := n.setFinalizers(t.Context(), `["test.breakwater.dev/keep"]`, func(*corev1.Pod) bool { return true }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.endKeptPods(context.Background(), t) }) // the namespace could not be deleted
}

// endKeptPods removes the finalizers of all pods.
func (n *namespace) endKeptPods(ctx context.Context, t *testing.T) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(ctx, pollInterval, shortTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = n.setFinalizers(ctx, "null", func(p *corev1.Pod) bool { return len(p.Finalizers) > 0 })
		return last == nil, nil
	}); err != nil {
		t.Errorf("remove the finalizers of the pods: %v; last: %v", err, last)
	}
}

// endDeletedPod waits until a pod is deleted, and removes its finalizers.
func (n *namespace) endDeletedPod(t *testing.T) {
	t.Helper()
	await(t, rolloutTimeout, "a pod is deleted", func(ctx context.Context) error {
		count, err := n.setFinalizers(ctx, "null", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if err == nil && count == 0 {
			err = errors.New("no pod is deleted")
		}
		return err
	})
}

// setFinalizers sets the finalizers, as JSON, of the pods that match, and returns
// the number of these pods.
func (n *namespace) setFinalizers(ctx context.Context, finalizers string, matches func(*corev1.Pod) bool) (count int, err error) {
	list, err := n.kube.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range list.Items {
		if p := &list.Items[i]; matches(p) {
			count++
			_, e := n.kube.CoreV1().Pods(n.name).Patch(ctx, p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
			err = errors.Join(err, e)
		}
	}
	return count, err
}
