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
	// shortTimeout is for what needs no pod to start: a status that follows from
	// another, a wake-up.
	shortTimeout = 30 * time.Second
	// rolloutTimeout is for a few pods to be replaced and judged, some of the functions
	// starting from zero.
	rolloutTimeout = 2 * time.Minute
	// recoveryTimeout is for what needs a pod of the system to come back first.
	recoveryTimeout = 4 * time.Minute
	// settingsTimeout is how long a change of the configuration may take to be
	// seen by every binary: 2 s, and the time that it takes to look.
	settingsTimeout = 4 * time.Second
	// pollInterval is how often a condition is looked at.
	pollInterval = 250 * time.Millisecond
)

// await waits until the condition returns nil; until then its error says what
// is there instead.
func await(t *testing.T, within time.Duration, what string, condition func(ctx context.Context) error) {
	t.Helper()
	last := errors.New("nothing was seen")
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, within, true, func(ctx context.Context) (bool, error) {
		seen := condition(ctx)
		// The last look may be cut off by the deadline, and tells nothing then.
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
