//go:build race

package budget

// The model runs in one goroutine. make test-models also runs it without the race detector.
const defaultChecks = "40"
