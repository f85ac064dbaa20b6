// Package perf measures a release on the embedded cluster: what it costs the
// API server, and how long it takes against the same release in a namespace
// that is not opted in. It asserts no time; `make bench` prints a table and
// writes it to docs/performance.md.
package perf
