//go:build race

package changepod

// raceSlowdown reduces the load. The simulation runs in one goroutine; make test-models also runs
// it without the race detector.
const raceSlowdown = 4
