// Package perf measures, on the embedded cluster, what a release costs and how
// long it takes against the same roll-out in a namespace that is not opted in
// (TestReleases), what it costs to watch ten thousand pods that do nothing
// (TestIdle), what a budget costs deletions (TestProtection), and how much later
// a pod starts that waits for permissions (TestPermission). It asserts no time. `make bench` writes the tables to
// docs/performance.md; BENCH_PODS and BENCH_IDLE_PODS make a smaller one, which
// goes to bin/performance.md.
//
// Writes are counted in the API server's audit log, by ServiceAccount; CPU and
// memory are read from /proc, since all processes of the cluster are this
// machine's. A real control plane has machines of its own: what judging takes
// from the roll-out here is CPU of one machine for all.
package perf
