// Package v1alpha1 has the API types of part protection: PodUnavailableBudget
// (how many pods of an application may be unavailable at a time) and
// PodDeletionFlowControl (how many pods may be deleted in an interval).
//
// Groups, kinds and fields have the names of OpenKruise, so that most manifests for
// OpenKruise work unchanged (docs/protection/openkruise.md lists the differences).
//
// +k8s:deepcopy-gen=package
// +groupName=policy.kruise.io
// +kubebuilder:object:generate=false
package v1alpha1
