//go:build !race

// Package race tells tests whether the race detector runs.
package race

// Slowdown is 1 without the race detector.
const Slowdown = 1
