// Package poll waits in tests until a condition holds.
package poll

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Until checks the condition at each interval until it returns nil. Its error describes what it has seen.
func Until(ctx context.Context, interval, within time.Duration, what string, condition func(ctx context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, within, true, func(ctx context.Context) (bool, error) {
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
