// Package perf measures on the embedded cluster: the cost and duration of a
// judged release compared with a rollout in a namespace that is not opted in
// (TestReleases), the cost of watching 10,000 idle pods (TestIdle), the cost of
// a budget per deletion (TestProtection), and the delay of a pod's start by the
// wait for permissions (TestPermission). TestCallbackFlood and TestWebhookFlood need no
// cluster: they print how long genuine requests take while strangers flood the callback or a
// webhook. No test fails because of a duration.
// `make bench` writes the tables to docs/performance.md, or to
// bin/performance.md if BENCH_PODS or BENCH_IDLE_PODS has another value.
//
// Writes are counted in the API server's audit log, by ServiceAccount. CPU and
// memory are read from /proc, because all processes of the cluster run on this
// machine. They share its CPU, so judging slows the rollout more than on a real
// cluster, whose control plane has its own machines.
package perf
