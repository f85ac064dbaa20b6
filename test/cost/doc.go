// Package cost counts what Breakwater costs the API server: requests, by component, verb
// and resource, for each released pod. The control plane is real (test/controlplane).
// The functions run in the process of the tests behind a Broker of the tests, which
// delivers as the in-memory Broker does; the server is test/altershielddouble.
//
// Traces are exported to a real OpenTelemetry Collector: they cost no requests, and a test reads
// the trace of a release from it.
//
// Counts do not depend on the speed of the machine, so they are tests and not benchmarks.
package cost
