package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
)

// Patch returns the JSON patch (RFC 6902) that makes after of before, or nil
// when they agree. It compares labels, annotations and spec.paused only: all
// that Breakwater ever writes on a Deployment at admission. Whatever else
// stands in the object, and fields that our types do not know, stays untouched.
func Patch(before, after *appsv1.Deployment) ([]byte, error) {
	from, err := json.Marshal(writable(before))
	if err != nil {
		return nil, fmt.Errorf("encode what there was: %w", err)
	}
	to, err := json.Marshal(writable(after))
	if err != nil {
		return nil, fmt.Errorf("encode what is to be: %w", err)
	}
	ops, err := jsonpatch.CreatePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	if len(ops) == 0 {
		return nil, nil
	}
	// No operation depends on another; in order, one change has one patch.
	slices.SortFunc(ops, func(a, b jsonpatch.Operation) int { return strings.Compare(a.Path, b.Path) })
	return json.Marshal(ops)
}

// fields have the places and the omissions of those of a Deployment, so that a
// patch between them fits the Deployment.
type fields struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Paused bool `json:"paused,omitempty"`
	} `json:"spec"`
}

func writable(d *appsv1.Deployment) fields {
	var f fields
	f.Metadata.Labels, f.Metadata.Annotations = d.Labels, d.Annotations
	f.Spec.Paused = d.Spec.Paused
	return f
}
