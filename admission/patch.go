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

// Mutation is the desired state of the fields of a workload that Breakwater writes at
// admission. All other fields stay unchanged, also those that our types lack.
type Mutation struct {
	// Labels and Annotations are the complete desired maps.
	Labels, Annotations map[string]string
	// Rollout is the operations that resume a held rollout or keep it stopped; usually empty.
	Rollout []workload.Operation
	// Template changes the release on the template of a Knative Service; otherwise empty.
	Template []workload.Operation
	// Traffic changes spec.traffic of a Knative Service; usually empty.
	Traffic []workload.Operation
}

// NewMutation returns a mutation without changes.
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

// Patch returns the JSON patch (RFC 6902) that applies the mutation to the workload,
// or nil if nothing changes.
func (m Mutation) Patch(w *workload.Workload) ([]byte, error) {
	from, err := metadata(w.Labels, w.Annotations)
	if err != nil {
		return nil, fmt.Errorf("encode old metadata: %w", err)
	}
	to, err := metadata(m.Labels, m.Annotations)
	if err != nil {
		return nil, fmt.Errorf("encode new metadata: %w", err)
	}
	compared, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare metadata: %w", err)
	}
	ops := make([]workload.Operation, 0, len(compared)+len(m.Rollout)+len(m.Template)+len(m.Traffic))
	for _, op := range compared {
		ops = append(ops, workload.Operation{Op: op.Operation, Path: op.Path, Value: op.Value})
	}
	// The operations are independent; sorting makes the patch deterministic.
	slices.SortFunc(ops, func(a, b workload.Operation) int { return strings.Compare(a.Path, b.Path) })
	if ops = slices.Concat(ops, m.Rollout, m.Template, m.Traffic); len(ops) == 0 {
		return nil, nil
	}
	return json.Marshal(ops)
}

// metadata encodes labels and annotations at their paths in an object, so that a
// patch between two results applies to the object.
func metadata(labels, annotations map[string]string) ([]byte, error) {
	type fields struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	return json.Marshal(map[string]fields{"metadata": {labels, annotations}})
}
