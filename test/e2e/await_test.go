//go:build e2e

package e2e

import (
	"context"
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
// state. The deadline can pass during a check, so a last check begins after it.
func await(t *testing.T, within time.Duration, what string, condition func(ctx context.Context) error) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, within, true, func(ctx context.Context) (bool, error) {
		return condition(ctx) == nil, nil
	})
	if err == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), shortTimeout)
	defer cancel()
	if last := condition(ctx); last != nil {
		t.Fatalf("not within %s: %s; last seen: %v", within, what, last)
	}
}

// observe waits for a duration in which an event must not happen.
func observe(t *testing.T, duration time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	<-ctx.Done()
}
