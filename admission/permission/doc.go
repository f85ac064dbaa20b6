// Package permission implements the admission webhooks of permissions.
// mpodpermission.kb.io injects the init container into pods that need
// permissions. vpermissionset.kb.io denies workloads and namespaces that name
// unknown permission sets. Templates of workloads are not changed.
//
// The sets are in an annotation of the pod, a workload or the namespace; the first
// of these takes precedence, and an empty value requests none. A
// ValidatingAdmissionPolicy protects the label of injected pods.
package permission
