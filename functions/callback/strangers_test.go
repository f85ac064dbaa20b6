//go:build !race

package callback_test

import "time"

const (
	strangersAtOnce = 1000
	handlingTime    = 25 * time.Second // as in the process
)
