//go:build race

package property

// A history runs in one goroutine, and takes five times as long with the race detector. make
// test-models runs all without it.
const defaultChecks = "6"
