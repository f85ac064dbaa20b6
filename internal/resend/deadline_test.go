package resend

import (
	"testing"
	"time"

	"knative.dev/pkg/reconciler"
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

func TestDecidingSinceInANamespaceBeginsAgainAfterAnOptOut(t *testing.T) {
	var s DecidingSince
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	for _, tc := range []struct {
		what string
		got  time.Time
		want int64
	}{
		{"the first decision", s.In("a", at(1)), 1},
		{"a later one", s.In("a", at(2)), 1},
		{"another namespace", s.In("b", at(3)), 1},
		{"after an opt-out", func() time.Time { s.Pause("a"); return s.In("a", at(4)) }(), 4},
		{"a later one after it", s.In("a", at(5)), 4},
		{"another namespace after it", s.In("b", at(6)), 1},
		{"after another opt-out", func() time.Time { s.Pause("a"); return s.In("a", at(7)) }(), 7},
		{"of the process", s.Get(at(8)), 1},
	} {
		if tc.got.Unix() != tc.want {
			t.Errorf("%s: %d, want %d", tc.what, tc.got.Unix(), tc.want)
		}
	}
}

// bucket is a bucket of this name.
type bucket struct {
	reconciler.Bucket
	name string
}

func (b bucket) Name() string { return b.name }

func TestDecidingSinceBeginsAgainAfterTheLastBucketWasLost(t *testing.T) {
	var s DecidingSince
	a, b := bucket{name: "a"}, bucket{name: "b"}
	check := func(what string, now, want int64) {
		t.Helper()
		if got := s.In("default", time.Unix(now, 0)).Unix(); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	s.Promote(a)
	check("the first decision", 1, 1)
	s.Promote(b)
	check("with another bucket", 2, 1)
	s.Demote(a)
	check("with one bucket", 3, 1)
	s.Demote(b)
	check("a reconciliation that ends after that", 4, 4)
	s.Promote(b)
	check("the first decision after the outage", 1000, 1000)
	s.Promote(a)
	check("a later one", 1001, 1000)
}
