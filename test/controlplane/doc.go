// Package controlplane runs a control plane for the tests of one package: etcd, the
// API server, controller manager, scheduler and kwok as processes, and Breakwater's
// webhooks and controllers in the process of the tests, where the race detector sees
// them. It starts in seconds and needs no root, no containers and no network.
//
// Pods run on simulated nodes. Tests that need containers, Knative, several replicas
// or the end of a process run on the embedded cluster (test/e2e).
//
// test/cluster builds and starts the processes. The API server calls webhooks as
// always, by Service; it connects through a proxy in the process of the tests.
package controlplane
