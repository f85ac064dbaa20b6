//go:build race

package centre

// slower: with the race detector SQLite, which is Go here, is that much slower.
// make test-unit runs the tests of load without it, too.
const slower = 5
