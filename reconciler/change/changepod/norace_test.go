//go:build !race

package changepod

const raceSlowdown = 1
