// Package e2e holds the end-to-end tests. They run on a real cluster that has
// Breakwater installed and no server configured, as `make up` leaves it, and
// leave it like that:
//
//	make test-e2e
//
// Each test has a namespace of its own. One that fails leaves the state of it
// in bin/e2e/<test>/ before the namespace is deleted.
//
// The groups in specs_test.go run one after the other: first without a server,
// then with the double of the server, then while parts are killed. Within a
// group, tests that disturb nobody run side by side.
package e2e
