package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LabelSelector returns the selector as the type of Kubernetes.
func (s *PodSelector) LabelSelector() *metav1.LabelSelector {
	if s == nil {
		return nil
	}
	selector := &metav1.LabelSelector{MatchLabels: s.MatchLabels}
	for _, e := range s.MatchExpressions {
		selector.MatchExpressions = append(selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator, Values: e.Values})
	}
	return selector
}
