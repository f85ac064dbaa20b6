// Package workload reads workloads of every kind into one type. A Kind
// describes the differences: the status fields that count pods, the field that
// holds a rollout, and the kind of object from which the version of a pod is
// read.
//
// Deployment, StatefulSet, DaemonSet and the Service of Knative are built in. Other kinds with a pod
// template that own their pods, directly or through ReplicaSets, can be added
// in the ConfigMap config-workloads.
package workload
