package workload

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Operation is an operation of a JSON patch (RFC 6902). The API server rejects
// a patch that begins with tests if the object has changed meanwhile.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Label returns the JSON pointer of a label.
func Label(key string) string { return Pointer("metadata", "labels", key) }

// Annotation returns the JSON pointer of an annotation.
func Annotation(key string) string { return Pointer("metadata", "annotations", key) }

// Pointer returns the JSON pointer (RFC 6901) of a path.
func Pointer(path ...string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}

// UnchangedOperations returns the tests that the workload and its release are
// unchanged. A patch that begins with them is never applied to a newer
// template.
func UnchangedOperations(uid types.UID, release v1alpha1.Release) []Operation {
	return []Operation{
		{Op: "test", Path: Pointer("metadata", "uid"), Value: uid},
		{Op: "test", Path: Annotation(v1alpha1.VersionKey), Value: release.Version},
		{Op: "test", Path: Annotation(v1alpha1.AttemptAnnotation), Value: strconv.FormatInt(release.Attempt, 10)},
	}
}

// Stop returns the operations that stop the rollout; none if it is stopped,
// if the workload's controller replaces no pods by itself (OnDelete), or if no field of the kind
// stops a rollout.
func (w *Workload) Stop() []Operation {
	if w.PausedOrHeld() || w.OnDelete || len(w.Kind.PauseField.Path) == 0 {
		return nil
	}
	path := w.Kind.PauseField.Path
	var ops []Operation
	for i := w.pauseDepth; i < len(path)-1; i++ {
		ops = append(ops, Operation{"add", Pointer(path[:i+1]...), map[string]any{}})
	}
	return append(ops, Operation{"add", Pointer(path...), w.Kind.PauseField.Paused})
}

// Resume returns the operations that restore the former value of the field of
// the hold, where nil means absent. It returns none if the rollout was resumed
// already, or was stopped before the hold.
func (w *Workload) Resume(former any) []Operation {
	switch {
	case !w.PausedOrHeld() || w.Kind.HoldChangedNothing(former):
		return nil
	case former == nil:
		return []Operation{{Op: "remove", Path: Pointer(w.Kind.PauseField.Path...)}}
	default:
		return []Operation{{"add", Pointer(w.Kind.PauseField.Path...), former}}
	}
}

// HoldChangedNothing reports whether a hold with this former value of its field has changed nothing: the field
// had the value already, or no rollout had to be stopped.
func (k Kind) HoldChangedNothing(former any) bool {
	return normalizeNumber(former) == k.PauseField.Paused
}
