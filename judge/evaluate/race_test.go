//go:build race

package evaluate

// The race detector makes the arithmetic ten times slower; make test-models also simulates
// without it.
const defaultReleases = 6
