//go:build race

package server

// raceSlowdown reduces the load: calls need several times the memory and time with the race
// detector. make test-rates also runs the load test without it.
const raceSlowdown = 5
