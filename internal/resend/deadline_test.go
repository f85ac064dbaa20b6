package resend

import (
	"testing"
	"time"
)

func TestANewProcessExtendsExpiredDeadlines(t *testing.T) {
	end := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		up, now int64
		want    int64
	}{
		"a process that ran before the deadline":        {500, 1001, 1000},
		"a new process":                                 {1100, 1100, 1115},
		"a process that began just before the deadline": {990, 1001, 1005},
		"a clock that was set back":                     {2000, 1001, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			got := ExtendDeadline(end, time.Unix(tc.up, 0), time.Unix(tc.now, 0), 15*time.Second)
			if got.Unix() != tc.want {
				t.Errorf("deadline %d, want %d", got.Unix(), tc.want)
			}
		})
	}
}

func TestDecidingSinceIsTheTimeOfTheFirstCall(t *testing.T) {
	var s DecidingSince
	first := time.Unix(1, 0)
	if s.Get(first); !s.Get(time.Unix(2, 0)).Equal(first) {
		t.Error("the second call changed it")
	}
}
