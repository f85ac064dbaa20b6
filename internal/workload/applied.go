package workload

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/managedfields"
)

// ManifestPauses reports whether the last applied manifest (server-side apply or kubectl apply)
// stops the rollout. The value of the field alone does not show this, because Breakwater sets
// the field too, but never by apply. A manifest of kubectl apply does not count if the field was
// written after it: then a person had resumed the rollout before Breakwater held it.
func (w *Workload) ManifestPauses() bool {
	if !w.PausedOrHeld() {
		return false
	}
	for _, entry := range w.ManagedFields {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && managedfields.Has(entry.FieldsV1, w.Kind.PauseField.Path...) {
			return true
		}
	}
	applied, known := managedfields.LastWrite(w.ManagedFields, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	written, both := managedfields.LastWrite(w.ManagedFields, w.Kind.PauseField.Path...)
	if known && both && applied.Before(written) {
		return false
	}
	var manifest map[string]any
	if json.Unmarshal([]byte(w.Annotations[corev1.LastAppliedConfigAnnotation]), &manifest) != nil {
		return false
	}
	_, value := find(manifest, w.Kind.PauseField.Path)
	return value == w.Kind.PauseField.Paused
}
