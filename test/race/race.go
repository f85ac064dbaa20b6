//go:build race

package race

// Slowdown divides the load of a test: with the race detector, calls need several times the time and memory.
// make test-models and make test-rates run these tests also without it.
const Slowdown = 5
