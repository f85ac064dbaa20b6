// Package workload is how Breakwater sees workloads of every kind: what they
// have in common, and what is special about a kind (where its status counts,
// how its roll-out is held, where the version of a pod is read).
//
// Deployment, StatefulSet and DaemonSet are built in. Any other kind with a pod
// template that owns its pods, directly or by a ReplicaSet, can be named in the
// ConfigMap config-workloads.
package workload
