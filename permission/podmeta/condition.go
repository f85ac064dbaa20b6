package podmeta

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Condition returns the pod's condition of the given type, nil if there is none.
func Condition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// PatchCondition applies a strategic merge patch with one condition, which leaves the others unchanged. It
// does nothing if the pod no longer exists.
func PatchCondition(ctx context.Context, client corev1client.PodsGetter, p *corev1.Pod, condition any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID},
		"status":   map[string]any{"conditions": []any{condition}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition: %w", err)
	}
	_, err = client.Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrs.IsNotFound(err) && !apierrs.IsConflict(err) {
		return fmt.Errorf("patch the condition: %w", err)
	}
	return nil
}
