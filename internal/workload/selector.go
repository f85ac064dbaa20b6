package workload

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodSelector returns spec.selector of an object of any kind; nil if it is absent or null. A ReplicationController has a
// plain map of labels.
func PodSelector(object map[string]any) (*metav1.LabelSelector, error) {
	found, _, err := unstructured.NestedFieldNoCopy(object, "spec", "selector")
	if err != nil || found == nil {
		return nil, err
	}
	raw, ok := found.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("spec.selector is of type %T, want an object", found)
	}
	if object["kind"] == "ReplicationController" {
		raw = map[string]any{"matchLabels": raw}
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil, fmt.Errorf("parse spec.selector: %w", err)
	}
	return selector, nil
}
