// Package v1alpha1 holds the nouns of runtime protection: PodUnavailableBudget
// (how many pods of an application may be unavailable at a time) and
// PodDeletionFlowControl (how many pods may be deleted in a time).
//
// Names of groups, kinds and fields are those of OpenKruise, so that what its
// users have written works unchanged.
//
// +k8s:deepcopy-gen=package
// +groupName=policy.kruise.io
// +kubebuilder:object:generate=false
package v1alpha1
