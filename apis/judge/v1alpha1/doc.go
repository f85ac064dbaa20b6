// Package v1alpha1 has the API types of the judge: MetricCheck, which says how
// released pods are judged by their metrics, and Record, which says what a judge
// has seen and decided.
//
// +k8s:deepcopy-gen=package
// +groupName=judge.breakwater.dev
// +kubebuilder:object:generate=false
package v1alpha1
