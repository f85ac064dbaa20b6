//go:build !race

package lifecycle_test

const raceSlowdown = 1
