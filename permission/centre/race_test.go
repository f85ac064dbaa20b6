//go:build race

package centre

// raceSlowdown reduces the load: the race detector makes SQLite, which is Go code,
// slower. make test-rates also runs the load tests without it.
const raceSlowdown = 5
