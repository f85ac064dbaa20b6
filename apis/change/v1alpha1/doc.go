// Package v1alpha1 defines the API of part change: OpsConfigInfo (one setting),
// ChangeWorkload (one release of a workload), ChangePod (one batch of its pods) and
// ReleaseCheck (the server's answer about a release).
//
// Groups, kinds, fields and labels have the names of the AlterShield Operator, so that
// commands of its users work unchanged. The comment of a status field names its
// writers; docs/architecture.md lists those of all fields.
//
// +k8s:deepcopy-gen=package
// +groupName=app.ops.cloud.alipay.com
// +kubebuilder:object:generate=false
package v1alpha1
