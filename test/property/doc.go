// Package property tests the state machines of ChangeWorkload and ChangePod with
// random histories: lost, duplicate, late and reordered events, conflicting
// writes, clock steps (with a restart of the controller), crashes, server faults, and verdicts and releases by people.
// Reconcilers, functions and callback are the real ones. The API server, caches,
// Broker and Kubernetes controllers are models; the server is test/altershielddouble.
//
// After each history the faults end and everything runs until nothing is due. Then
// the invariants of invariants_test.go must hold. A history that violates one is
// shrunk, and its seed is printed.
//
//	go test ./test/property                       # seconds
//	go test ./test/property -rapid.checks=3000    # longer
//	go test ./test/property -rapid.seed=1234      # repeat a failed run
package property
