//go:build race

package property

// A history runs in one goroutine, and takes five times as long with the race detector. make
// test-unit also runs all without it.
const defaultChecks = "6"
