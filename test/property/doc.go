// Package property tries the state machines of ChangeWorkload and ChangePod
// with random histories: events that are lost, doubled, late or out of order,
// writes that conflict, clocks that step, processes that die in the middle, a
// server that answers late, wrongly or not at all, people who judge and
// release. The reconcilers, functions and the callback are the real ones; the
// API server, its caches, the Broker and the controllers of Kubernetes are
// models, and the judge is the double of the server.
//
// After each history the faults end, everything runs until nothing more
// happens, and the invariants of invariants_test.go have to hold. A history
// that breaks one is shrunk and its seed is printed.
//
//	go test -tags property ./test/property                       # seconds
//	go test -tags property ./test/property -rapid.checks=3000    # longer
//	go test -tags property ./test/property -rapid.seed=1234      # again
package property
