//go:build race

package callback_test

import "time"

// The race detector makes each body of a stranger many times as expensive, in the process
// that also plays the strangers. `make test-rates` runs without it.
const (
	strangersAtOnce = 100
	handlingTime    = 5 * time.Minute
)
