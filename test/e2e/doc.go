// Package e2e holds the end-to-end tests. They need a cluster with Breakwater
// and without a server, as `make up` installs it, and restore that state:
//
//	make test-e2e
//
// Each test has its own namespace. A failed test writes the state of the
// namespace to bin/e2e/<test>/ before the namespace is deleted.
//
// The groups in specs_test.go run sequentially: first without a server, then
// with the double of the server, then while components are killed. Within a group,
// independent tests run in parallel.
package e2e
