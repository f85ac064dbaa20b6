package resend

import (
	"context"

	"k8s.io/utils/clock"
)

type clockKey struct{}

// WithClock returns a context with a clock for the controllers that are created
// with it.
func WithClock(ctx context.Context, c clock.PassiveClock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// Clock returns the clock of the context, or the real clock.
func Clock(ctx context.Context) clock.PassiveClock {
	if c, ok := ctx.Value(clockKey{}).(clock.PassiveClock); ok {
		return c
	}
	return clock.RealClock{}
}
