//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// shortTimeout is for conditions that start no pod: a derived status, a
	// wake-up.
	shortTimeout = 30 * time.Second
	// rolloutTimeout is for replacing and judging a few pods while functions
	// start from zero.
	rolloutTimeout = 2 * time.Minute
	// recoveryTimeout is for conditions that need the restart of a system pod
	// first.
	recoveryTimeout = 4 * time.Minute
	// settingsTimeout bounds the time until all binaries use a changed
	// configuration: 2 s, and the time of a check.
	settingsTimeout = 4 * time.Second
	// pollInterval is the interval between checks of a condition.
	pollInterval = 250 * time.Millisecond
)

// await waits until the condition returns nil. Its error describes the current
// state.
func await(t *testing.T, within time.Duration, what string, condition func(ctx context.Context) error) {
	t.Helper()
	last := errors.New("not checked")
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, within, true, func(ctx context.Context) (bool, error) {
		seen := condition(ctx)
		// Ignore the error of a check that the deadline interrupted.
		if seen != nil && ctx.Err() != nil {
			return false, nil
		}
		last = seen
		return seen == nil, nil
	})
	if err != nil {
		t.Fatalf("not within %s: %s; last seen: %v", within, what, last)
	}
}
