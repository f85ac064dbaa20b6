// Package perf measures on the embedded cluster:
//
//   - TestReleases: the cost and duration of a judged release compared with a rollout in a
//     namespace that is not opted in.
//   - TestConcurrent: the delay of verdicts while 100 releases run at the same time.
//   - TestFromZero: the delay of a verdict that starts the functions.
//   - TestIdle: the cost of 10,000 idle pods with budgets and grants.
//   - TestProtection: the cost of a budget per deletion.
//   - TestCrash: the time until a budget counts a crashed pod.
//   - TestPermission: the delay of a pod's start by the wait for permissions.
//
// TestCallbackFlood and TestWebhookFlood need no cluster: they print how long genuine
// requests take while strangers flood the callback or a webhook. No test fails because of a
// duration.
//
// `make bench` writes the tables to docs/performance.md and the figures to
// docs/performance.json. If sizes differ from the defaults, and with BENCH=quick,
// both go to bin/.
//
// Requests are counted in the API server's audit log, by ServiceAccount. The CPU of a unit
// of work is that of the whole machine, from /proc/stat, so no other work may run on
// it. It is compared with the bare unit of the same run, because machines differ. CPU and
// memory of each component are read from /proc, because all processes of the cluster run on this
// machine. They share its CPU, so judging slows the rollout more than on a real
// cluster, whose control plane has its own machines.
package perf
