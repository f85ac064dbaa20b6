package poll

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheErrorHasWhatWasSeenBeforeTheDeadlineInterruptedACheck(t *testing.T) {
	for name, interrupt := range map[string]func(context.Context) error{
		"at the deadline": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"by the rate limiter of the client": func(context.Context) error {
			return errors.New("rate: Wait(n=1) would exceed context deadline")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				checks := 0
				err := Until(t.Context(), time.Second, 5*time.Second, "all are ready", func(ctx context.Context) error {
					if checks++; checks == 1 {
						return errors.New("2 of 3")
					}
					return interrupt(ctx)
				})
				if err == nil || err.Error() != "not within 5s: all are ready; last seen: 2 of 3" {
					t.Error(err)
				}
			})
		})
	}
}

func TestTheErrorSaysThatTheRunHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		err := Until(ctx, time.Second, time.Minute, "all are ready", func(context.Context) error {
			stop(errors.New("the run ended"))
			return errors.New("2 of 3")
		})
		if err == nil || err.Error() != "the run ended before: all are ready; last seen: 2 of 3" {
			t.Error(err)
		}
	})
}

func TestTheConditionIsCheckedUntilItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Require(t, time.Second, time.Minute, "3 s have passed", func(context.Context) error {
			if time.Since(began) < 3*time.Second {
				return errors.New("not yet")
			}
			return nil
		})
		if took := time.Since(began); took != 3*time.Second {
			t.Error(took)
		}
	})
}

func TestTheIntervalGrowsUnlessItIsSteady(t *testing.T) {
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		require  func(testing.TB, time.Duration, time.Duration, string, func(context.Context) error)
		interval time.Duration
		want     []time.Duration
	}{
		"short":  {Require, 200 * ms, []time.Duration{0, 200 * ms, 300 * ms, 450 * ms, 500 * ms, 500 * ms}},
		"long":   {Require, time.Second, []time.Duration{0, time.Second, time.Second}},
		"steady": {RequireSteady, 200 * ms, []time.Duration{0, 200 * ms, 200 * ms, 200 * ms, 200 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []time.Duration
				before := time.Now()
				tc.require(t, tc.interval, time.Minute, "there were enough checks", func(context.Context) error {
					got = append(got, time.Since(before))
					before = time.Now()
					if len(got) < len(tc.want) {
						return errors.New("too few")
					}
					return nil
				})
				if !slices.Equal(got, tc.want) {
					t.Errorf("the intervals were %v, want %v", got, tc.want)
				}
			})
		})
	}
}
