package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Mutation is what a workload becomes: all that Breakwater ever writes on one
// at admission. Whatever else stands in the object, and fields that our types
// do not know, stays untouched.
type Mutation struct {
	// Labels and Annotations are all that the workload is to have.
	Labels, Annotations map[string]string
	// Hold changes the field that stops the roll-out; mostly nothing.
	Hold []workload.Operation
}

// NewMutation returns the mutation that changes nothing of the workload.
func NewMutation(w *workload.Workload) Mutation {
	return Mutation{Labels: maps.Clone(w.Labels), Annotations: maps.Clone(w.Annotations)}
}

// SetLabel sets a label.
func (m *Mutation) SetLabel(key, value string) { set(&m.Labels, key, value) }

// SetAnnotation sets an annotation.
func (m *Mutation) SetAnnotation(key, value string) { set(&m.Annotations, key, value) }

func set(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// Patch returns the JSON patch (RFC 6902) that makes the mutation of the
// workload, or nil when there is nothing to change.
func (m Mutation) Patch(w *workload.Workload) ([]byte, error) {
	from, err := metadata(w.Labels, w.Annotations)
	if err != nil {
		return nil, fmt.Errorf("encode what there was: %w", err)
	}
	to, err := metadata(m.Labels, m.Annotations)
	if err != nil {
		return nil, fmt.Errorf("encode what is to be: %w", err)
	}
	compared, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	ops := make([]workload.Operation, 0, len(compared)+len(m.Hold))
	for _, op := range compared {
		ops = append(ops, workload.Operation{Op: op.Operation, Path: op.Path, Value: op.Value})
	}
	// No operation depends on another; in order, one change has one patch.
	slices.SortFunc(ops, func(a, b workload.Operation) int { return strings.Compare(a.Path, b.Path) })
	if ops = append(ops, m.Hold...); len(ops) == 0 {
		return nil, nil
	}
	return json.Marshal(ops)
}

// metadata has the places and the omissions of those of an object, so that a
// patch between two fits the object.
func metadata(labels, annotations map[string]string) ([]byte, error) {
	type fields struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	return json.Marshal(map[string]fields{"metadata": {labels, annotations}})
}
