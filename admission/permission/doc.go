// Package permission decides what pre-authorization does at admission: pods that
// need permissions get the init container that waits for them
// (mpodpermission.kb.io), and sets that do not exist are refused where they are
// written down (vpermissionset.kb.io). Templates of workloads are never touched.
//
// Which sets a pod needs stands on its template, on a workload above it or on
// its namespace; the nearest counts, and an empty one asks for none. That the
// label of an injected pod is neither forged nor removed is a
// ValidatingAdmissionPolicy.
package permission
