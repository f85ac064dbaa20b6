package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// DefaultName is the name of the MetricCheck that applies to workloads that no other
// MetricCheck selects. It is in the namespace of Breakwater.
const DefaultName = "default"

// Select returns the MetricCheck of a workload, or nil. The order is: one of its namespace
// that selects it by labels; one of its namespace that selects all workloads; byDefault,
// which may be nil. Of several, the first by name applies, so that the choice is
// deterministic.
func Select(ofNamespace []*MetricCheck, byDefault *MetricCheck, workload map[string]string) *MetricCheck {
	var byLabels, ofAll *MetricCheck
	for _, c := range ofNamespace {
		if c.DeletionTimestamp != nil {
			continue
		}
		selector := c.Spec.WorkloadSelector
		matches, err := metav1.LabelSelectorAsSelector(selector)
		switch {
		case selector == nil || len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0:
			ofAll = first(ofAll, c)
		case err == nil && matches.Matches(labels.Set(workload)):
			byLabels = first(byLabels, c)
		}
	}
	switch {
	case byLabels != nil:
		return byLabels
	case ofAll != nil:
		return ofAll
	case byDefault != nil && byDefault.DeletionTimestamp == nil:
		return byDefault
	default:
		return nil
	}
}

func first(a, b *MetricCheck) *MetricCheck {
	if a == nil || strings.Compare(b.Name, a.Name) < 0 {
		return b
	}
	return a
}
