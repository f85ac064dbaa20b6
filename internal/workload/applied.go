package workload

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppliesHold reports whether the manifest that was applied last sets the field that stops
// the rollout to the value that does: by server-side apply, or by kubectl apply. Breakwater
// sets the field too, so the value alone does not tell. Breakwater never applies.
func (w *Workload) AppliesHold() bool {
	if !w.Paused() {
		return false
	}
	for _, entry := range w.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && hasField(entry.FieldsV1, w.Kind.Hold.Path) {
			return true
		}
	}
	var manifest map[string]any
	if json.Unmarshal([]byte(w.Annotations[corev1.LastAppliedConfigAnnotation]), &manifest) != nil {
		return false
	}
	_, value := find(manifest, w.Kind.Hold.Path)
	return value == w.Kind.Hold.Held
}

// hasField reports whether the set has the field of the path.
func hasField(set *metav1.FieldsV1, path []string) bool {
	var fields map[string]any
	if set == nil || json.Unmarshal(set.Raw, &fields) != nil {
		return false
	}
	for _, name := range path {
		child, ok := fields["f:"+name].(map[string]any)
		if !ok {
			return false
		}
		fields = child
	}
	return true
}
