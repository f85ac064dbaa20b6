// Package deadline combines deadlines, and computes how long a reconciler waits for one.
package deadline

import "time"

// Latest returns the later of two times, for a deadline that begins when both have passed.
func Latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Earliest returns the earlier of two times. A zero time means never.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// WaitUntil returns the wait until a time. It is at least a millisecond, because 0 means none.
func WaitUntil(at, now time.Time) time.Duration { return max(at.Sub(now), time.Millisecond) }

// ShorterWait returns the shorter of two waits. 0 means that there is none.
func ShorterWait(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
