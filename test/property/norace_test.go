//go:build !race

package property

// defaultChecks is the number of histories of each test.
const defaultChecks = "30"
