package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/breakwater-dev/breakwater/internal/jsonfields"
)

// SameTemplate reports whether two pod templates, as JSON, have the same meaning. A
// custom kind is stored as its user wrote it, and its controller may write it again from
// Go types: empty fields appear or disappear, and quantities change from 1000m to 1.
//
// The same meaning is the same version, so a template without a change keeps its
// version. Fields that our types lack do not change the version, except those of a Knative
// Service (DecodeTemplate); they are compared as they are written, except that null equals an
// absent field.
//
// An empty object differs from an absent one where it does in Kubernetes: the
// namespaceSelector {} selects all namespaces, and no namespaceSelector selects one.
func SameTemplate(a, b json.RawMessage) (bool, error) {
	if bytes.Equal(a, b) {
		return true, nil
	}
	before, err := meaningOf(a)
	if err != nil {
		return false, err
	}
	after, err := meaningOf(b)
	if err != nil {
		return false, err
	}
	return bytes.Equal(before.known, after.known) && reflect.DeepEqual(before.unknown, after.unknown), nil
}

// meaning is a pod template in a form that is equal for templates of the same meaning.
type meaning struct {
	// known is the JSON that Version hashes.
	known []byte
	// unknown are the fields that corev1.PodTemplateSpec lacks, at their places; nil if
	// there are none.
	unknown any
}

func meaningOf(raw json.RawMessage) (meaning, error) {
	var typed corev1.PodTemplateSpec
	var content any
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	if err := kubejson.Unmarshal(raw, &typed); err != nil {
		return meaning{}, fmt.Errorf("decode template: %w", err)
	}
	if err := kubejson.Unmarshal(raw, &content); err != nil {
		return meaning{}, fmt.Errorf("decode template: %w", err)
	}
	known, err := encode(&typed)
	return meaning{known: known, unknown: unknownFields(content, reflect.TypeFor[corev1.PodTemplateSpec]())}, err
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// unknownFields returns the part of a decoded value that has no field in the Go type;
// nil if there is none.
func unknownFields(value any, t reflect.Type) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return nil // a quantity or a time
	}
	rest := map[string]any{}
	add := func(key string, value any) {
		if value != nil {
			rest[key] = value
		}
	}
	switch value := value.(type) {
	case map[string]any:
		fields := jsonfields.Of(t)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if field, known := fields[key]; known {
				add(key, unknownFields(value[key], field))
			} else if t.Kind() == reflect.Struct {
				add(key, value[key])
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, element := range value {
			add(strconv.Itoa(i), unknownFields(element, t.Elem()))
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}
