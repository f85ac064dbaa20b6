package resend

import (
	"context"

	"k8s.io/utils/clock"
)

type clockKey struct{}

// WithClock gives controllers that are made with the context another time than
// the machine's.
func WithClock(ctx context.Context, c clock.PassiveClock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// Clock returns the time for a controller that is made with the context.
func Clock(ctx context.Context) clock.PassiveClock {
	if c, ok := ctx.Value(clockKey{}).(clock.PassiveClock); ok {
		return c
	}
	return clock.RealClock{}
}
