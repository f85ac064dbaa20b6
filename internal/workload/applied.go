package workload

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManifestPauses reports whether the last applied manifest (server-side apply or kubectl apply)
// stops the rollout. The value of the field alone does not show this, because Breakwater sets
// the field too, but never by apply.
func (w *Workload) ManifestPauses() bool {
	if !w.PausedOrHeld() {
		return false
	}
	for _, entry := range w.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && hasField(entry.FieldsV1, w.Kind.PauseField.Path) {
			return true
		}
	}
	var manifest map[string]any
	if json.Unmarshal([]byte(w.Annotations[corev1.LastAppliedConfigAnnotation]), &manifest) != nil {
		return false
	}
	_, value := find(manifest, w.Kind.PauseField.Path)
	return value == w.Kind.PauseField.Paused
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
