// Package contextclock has the clock of a context, which the controllers that are created with it
// use for their deadlines and repetitions.
package contextclock

import (
	"context"

	"k8s.io/utils/clock"
)

type key struct{}

// With returns a context with a clock for the controllers that are created with it.
func With(ctx context.Context, c clock.PassiveClock) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Get returns the clock of the context, or the real clock.
func Get(ctx context.Context) clock.PassiveClock {
	if c, ok := ctx.Value(key{}).(clock.PassiveClock); ok {
		return c
	}
	return clock.RealClock{}
}
