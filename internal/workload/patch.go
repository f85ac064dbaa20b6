package workload

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Operation is one of a JSON patch (RFC 6902). A patch that begins with tests
// is refused by the API server when the object has become another meanwhile.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Label is the JSON pointer of a label.
func Label(key string) string { return Pointer("metadata", "labels", key) }

// Annotation is the JSON pointer of an annotation.
func Annotation(key string) string { return Pointer("metadata", "annotations", key) }

// Pointer is the JSON pointer (RFC 6901) of a path.
func Pointer(path ...string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}

// TestsOfRelease are the tests that a workload still is the one that was read, and at
// the release that was decided on: what begins with them never meets a newer
// template.
func TestsOfRelease(uid types.UID, release v1alpha1.Release) []Operation {
	return []Operation{
		{Op: "test", Path: Pointer("metadata", "uid"), Value: uid},
		{Op: "test", Path: Annotation(v1alpha1.VersionKey), Value: release.Version},
		{Op: "test", Path: Annotation(v1alpha1.AttemptAnnotation), Value: strconv.FormatInt(release.Attempt, 10)},
	}
}

// Stop returns the operations that stop the roll-out; none when it is stopped,
// or when the workload's controller replaces no pod by itself (OnDelete).
func (w *Workload) Stop() []Operation {
	if w.Held() || w.OnDelete {
		return nil
	}
	path := w.Kind.Hold.Path
	var ops []Operation
	for i := w.holdDepth; i < len(path)-1; i++ {
		ops = append(ops, Operation{"add", Pointer(path[:i+1]...), map[string]any{}})
	}
	return append(ops, Operation{"add", Pointer(path...), w.Kind.Hold.Held})
}

// Resume returns the operations that give the field of the hold its former
// value, nil meaning that it was absent; none when somebody else has let the
// roll-out go on already, or when it was stopped before the hold.
func (w *Workload) Resume(former any) []Operation {
	switch {
	case !w.Held() || normalizeNumber(former) == w.Kind.Hold.Held:
		return nil
	case former == nil:
		return []Operation{{Op: "remove", Path: Pointer(w.Kind.Hold.Path...)}}
	default:
		return []Operation{{"add", Pointer(w.Kind.Hold.Path...), former}}
	}
}
