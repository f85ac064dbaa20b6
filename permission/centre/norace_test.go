//go:build !race

package centre

const raceSlowdown = 1
