// Package v1alpha1 has the API types of the judge. MetricCheck configures how released
// pods are judged by their metrics. Record contains the evidence and the verdict of a
// judge.
//
// +k8s:deepcopy-gen=package
// +groupName=judge.breakwater.dev
// +kubebuilder:object:generate=false
package v1alpha1
