//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// podsOf returns the pods of a release that are not terminating. They belong to
// the ReplicaSets with its version and attempt.
func (n *namespace) podsOf(ctx context.Context, c *v1alpha1.ChangeWorkload) ([]corev1.Pod, error) {
	sets, err := n.kube.AppsV1().ReplicaSets(n.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	own := map[types.UID]bool{}
	for i := range sets.Items {
		rs := &sets.Items[i]
		own[rs.UID] = metav1.IsControlledBy(rs, &metav1.ObjectMeta{UID: c.Spec.WorkloadRef.UID}) &&
			rs.Annotations[v1alpha1.VersionKey] == c.Spec.Reversion &&
			rs.Annotations[v1alpha1.AttemptAnnotation] == strconv.FormatInt(c.Spec.Attempt, 10)
	}
	pods, err := n.kube.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []corev1.Pod
	for _, p := range pods.Items {
		owner := metav1.GetControllerOf(&p)
		if owner != nil && own[owner.UID] && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out, nil
}

// awaitClaims waits until each pod of the current release is claimed by exactly
// one ChangePod, and the ChangePods are numbered without a gap. A pod that is
// claimed twice is an error at once.
func (n *namespace) awaitClaims(t *testing.T, within time.Duration, name string) {
	t.Helper()
	var twice error
	await(t, within, "each pod of "+name+" is claimed exactly once", func(ctx context.Context) error {
		missing, double := n.claims(ctx, name)
		twice = double
		if double != nil {
			return nil
		}
		return missing
	})
	if twice != nil {
		t.Error(twice)
	}
}

func (n *namespace) claims(ctx context.Context, name string) (missing, double error) {
	c, err := n.current(ctx, name)
	if err != nil {
		return err, nil
	}
	pods, err := n.podsOf(ctx, c)
	if err != nil {
		return err, nil
	}
	batches, err := n.changePods(ctx, c)
	if err != nil {
		return err, nil
	}
	claimedBy := map[types.UID]string{}
	for i, b := range batches {
		if v1alpha1.ChangePodIndex(b.Name) != i+1 {
			return nil, fmt.Errorf("ChangePod %d of %s is %s: the numbers have a gap", i+1, c.Name, b.Name)
		}
		for _, p := range b.Spec.PodInfos {
			if other, ok := claimedBy[p.UID]; ok {
				return nil, fmt.Errorf("pod %s is claimed by %s and by %s", p.Pod, other, b.Name)
			}
			claimedBy[p.UID] = b.Name
		}
	}
	for i := range pods {
		if claimedBy[pods[i].UID] == "" {
			return fmt.Errorf("pod %s is not claimed", pods[i].Name), nil
		}
	}
	return nil, nil
}
