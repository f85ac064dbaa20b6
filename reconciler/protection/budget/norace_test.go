//go:build !race

package budget

// defaultChecks is the number of runs of the model, each of 100 steps.
const defaultChecks = "200"
