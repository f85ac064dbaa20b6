package deadline

import (
	"testing"
	"time"
)

func TestTheShorterOfTwoWaits(t *testing.T) {
	for _, tc := range []struct{ a, b, want time.Duration }{
		{0, 0, 0},
		{0, 2, 2},
		{2, 0, 2},
		{1, 2, 1},
		{2, 1, 1},
	} {
		if got := ShorterWait(tc.a, tc.b); got != tc.want {
			t.Errorf("ShorterWait(%d, %d) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestTheEarlierOfTwoTimes(t *testing.T) {
	never, first, second := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	for _, tc := range []struct{ a, b, want time.Time }{
		{never, never, never},
		{never, second, second},
		{second, never, second},
		{first, second, first},
		{second, first, first},
	} {
		if got := Earliest(tc.a, tc.b); !got.Equal(tc.want) {
			t.Errorf("Earliest(%v, %v) = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestTheWaitForAPastTimeIsNotNone(t *testing.T) {
	now := time.Unix(10, 0)
	if got := WaitUntil(now.Add(-time.Hour), now); got <= 0 {
		t.Errorf("WaitUntil of a past time = %s, want more than 0", got)
	}
}
