//go:build race

package lifecycle_test

// raceSlowdown reduces the load: the race detector makes SQLite, which is Go code,
// slower.
const raceSlowdown = 10
