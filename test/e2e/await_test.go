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
	// soon is for what needs no pod to start: a status that follows from
	// another, a wake-up.
	soon = 30 * time.Second
	// rollout is for a few pods to be replaced and judged, some of the functions
	// starting from zero.
	rollout = 2 * time.Minute
	// recovery is for what needs a pod of the system to come back first.
	recovery = 4 * time.Minute
	// settingsInForce is how long a change of the configuration may take to be
	// seen by every binary: 2 s, and the time that it takes to look.
	settingsInForce = 4 * time.Second
	// look is how often a condition is looked at.
	look = 250 * time.Millisecond
)

// await waits until the condition returns nil; until then its error says what
// is there instead.
func await(t *testing.T, within time.Duration, what string, condition func(ctx context.Context) error) {
	t.Helper()
	last := errors.New("nothing was seen")
	err := wait.PollUntilContextTimeout(t.Context(), look, within, true, func(ctx context.Context) (bool, error) {
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
