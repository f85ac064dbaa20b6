// Package poll waits in tests until a condition holds.
package poll

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// slowest is the interval up to which Until grows.
const slowest = 500 * time.Millisecond

// Until checks the condition until it returns nil. The interval grows by half each time, up to half a second: what is
// not reached at once takes long, and each check costs requests. Its error describes what it has seen.
func Until(ctx context.Context, interval, within time.Duration, what string, condition func(ctx context.Context) error) error {
	return until(ctx, wait.Backoff{Duration: interval, Factor: 1.5, Steps: math.MaxInt, Cap: max(interval, slowest)}, within, what, condition)
}

func until(ctx context.Context, intervals wait.Backoff, within time.Duration, what string, condition func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last error
	err := intervals.DelayFunc().Until(limited, true, false, func(ctx context.Context) (bool, error) {
		seen := condition(ctx)
		if last == nil || !interrupted(ctx, seen) {
			last = seen
		}
		return seen == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w before: %s; last seen: %w", context.Cause(ctx), what, last)
	default:
		return fmt.Errorf("not within %s: %s; last seen: %w", within, what, last)
	}
}

// interrupted reports whether the deadline ended a check: then its error says nothing about the condition.
// The rate limiter of a client fails before the deadline if it would have to wait longer.
func interrupted(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || strings.Contains(err.Error(), "would exceed context deadline"))
}

// Require is Until; an error ends the test.
func Require(t testing.TB, interval, within time.Duration, what string, condition func(ctx context.Context) error) {
	t.Helper()
	if err := Until(t.Context(), interval, within, what, condition); err != nil {
		t.Fatal(err)
	}
}

// RequireSteady is Require with an interval that does not grow, for a state that may be short.
func RequireSteady(t testing.TB, interval, within time.Duration, what string, condition func(ctx context.Context) error) {
	t.Helper()
	if err := until(t.Context(), wait.Backoff{Duration: interval}, within, what, condition); err != nil {
		t.Fatal(err)
	}
}
