// Package v1alpha1 holds the nouns of the change defence: OpsConfigInfo (how
// Breakwater behaves), ChangeWorkload (one version of a workload on its way
// out) and ChangePod (one batch of its pods before the judge).
//
// Names of groups, kinds, fields and labels are those of the AlterShield
// Operator, so that what its users type works unchanged. A field's comment
// names its only writer; see docs/architecture.md.
//
// +k8s:deepcopy-gen=package
// +groupName=app.ops.cloud.alipay.com
// +kubebuilder:object:generate=false
package v1alpha1
