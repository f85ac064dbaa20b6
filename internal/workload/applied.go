package workload

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/deadline"
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
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && hasField(entry.FieldsV1, w.Kind.PauseField.Path) {
			return true
		}
	}
	if w.lastWrite("metadata", "annotations", corev1.LastAppliedConfigAnnotation).Before(w.lastWrite(w.Kind.PauseField.Path...)) {
		return false
	}
	var manifest map[string]any
	if json.Unmarshal([]byte(w.Annotations[corev1.LastAppliedConfigAnnotation]), &manifest) != nil {
		return false
	}
	_, value := find(manifest, w.Kind.PauseField.Path)
	return value == w.Kind.PauseField.Paused
}

// lastWrite returns the latest time at which a manager of the field of the path wrote; zero if it is unknown.
func (w *Workload) lastWrite(path ...string) time.Time {
	var last time.Time
	for _, entry := range w.ManagedFields {
		if entry.Time != nil && hasField(entry.FieldsV1, path) {
			last = deadline.Latest(last, entry.Time.Time)
		}
	}
	return last
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
