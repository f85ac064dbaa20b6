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

func TestTheWaitForAPastTimeIsNotNone(t *testing.T) {
	now := time.Unix(10, 0)
	if got := WaitUntil(now.Add(-time.Hour), now); got <= 0 {
		t.Errorf("WaitUntil of a past time = %s, want more than 0", got)
	}
}
