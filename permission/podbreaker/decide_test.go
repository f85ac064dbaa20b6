package podbreaker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var zero = time.Unix(1<<30, 0).UTC()

// play applies the steps to a pod without an entry and returns the last answer.
func play(t *testing.T, steps ...Request) Decision {
	t.Helper()
	e, exists := Entry{UID: "uid"}, false
	var d Decision
	for _, r := range steps {
		var next *Entry
		var remove bool
		r.UID = "uid"
		if r.Now.IsZero() {
			r.Now = zero
		}
		d, next, remove = DefaultPolicy().Decide(e, exists, r)
		if next != nil {
			e, exists = *next, true
		}
		if remove {
			e, exists = Entry{UID: "uid"}, false
		}
	}
	return d
}

func denied(attempt int) Request {
	return Request{Operation: RecordFailure, Application: "app", Attempt: attempt, Denied: true}
}

func failed(attempt int) Request {
	return Request{Operation: RecordFailure, Application: "app", Attempt: attempt}
}

func begin(holder string, after time.Duration) Request {
	return Request{Operation: Acquire, Holder: holder, Now: zero.Add(after)}
}

func TestDecide(t *testing.T) {
	threeDenied := []Request{denied(1), denied(2), denied(3)}
	threeFailed := []Request{failed(1), failed(2), failed(3)}
	for name, tc := range map[string]struct {
		steps []Request
		want  Outcome
		next  time.Duration // after zero
	}{
		"nothing failed":                       {[]Request{begin("a", 0)}, Closed, 0},
		"denied once":                          {[]Request{denied(1), begin("a", 0)}, Closed, 0},
		"denied twice":                         {[]Request{denied(1), denied(2), begin("a", 0)}, Closed, 0},
		"denied three times":                   {append(threeDenied, begin("a", 0)), OpenDenied, 0},
		"denied three times, a day later":      {append(threeDenied, begin("a", 24*time.Hour)), OpenDenied, 0},
		"denied three times, reset":            {append(threeDenied, Request{Operation: Reset}, begin("a", 0)), Closed, 0},
		"reset, and the same is told again":    {append(threeDenied, Request{Operation: Reset}, denied(3), begin("a", 0)), Closed, 0},
		"reset, and denied three times anew":   {append(threeDenied, Request{Operation: Reset}, denied(4), denied(5), denied(6), begin("a", 0)), OpenDenied, 0},
		"the same denial told by two replicas": {[]Request{denied(1), denied(1), denied(1), begin("a", 0)}, Closed, 0},
		"a denial that nobody told of":         {[]Request{denied(1), denied(3), begin("a", 0)}, OpenDenied, 0},
		"failed twice":                         {[]Request{failed(1), failed(2), begin("a", 0)}, Closed, 0},
		"failed three times":                   {append(threeFailed, begin("a", 0)), OpenFailed, 2 * time.Minute},
		"failed, just before the interval":     {append(threeFailed, begin("a", 2*time.Minute-1)), OpenFailed, 2 * time.Minute},
		"failed, after the interval":           {append(threeFailed, begin("a", 2*time.Minute)), Closed, 0},
		"one try an interval":                  {append(threeFailed, begin("a", 2*time.Minute), begin("b", 2*time.Minute)), Busy, 2*time.Minute + acquireTimeout},
		"who tries may ask again":              {append(threeFailed, begin("a", 2*time.Minute), begin("a", 2*time.Minute)), Closed, 0},
		"who tries and is never heard of":      {append(threeFailed, begin("a", 2*time.Minute), begin("b", 2*time.Minute+acquireTimeout)), Closed, 0},
		"the try failed too":                   {append(threeFailed, begin("a", 2*time.Minute), failed(4), begin("b", 4*time.Minute-1)), OpenFailed, 4 * time.Minute},
		"the try succeeded":                    {append(threeFailed, begin("a", 2*time.Minute), Request{Operation: RecordSuccess}, failed(5), begin("b", 0)), Closed, 0},
		"failed twice and denied twice":        {[]Request{failed(1), denied(2), failed(3), denied(4), begin("a", 0)}, Closed, 0},
		"the centre cannot be reached, thrice": {[]Request{{Operation: RecordFailure, Call: "1"}, {Operation: RecordFailure, Call: "2"}, {Operation: RecordFailure, Call: "3"}, begin("a", 0)}, OpenFailed, 2 * time.Minute},
		"one call told thrice":                 {[]Request{{Operation: RecordFailure, Call: "1"}, {Operation: RecordFailure, Call: "1"}, {Operation: RecordFailure, Call: "1"}, begin("a", 0)}, Closed, 0},
		"two sets denied":                      {[]Request{denied(1), {Operation: RecordFailure, Application: "other", Attempt: 1, Denied: true}, begin("a", 0)}, Closed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			steps := append([]Request(nil), tc.steps...)
			got := play(t, steps...)
			if got.Outcome != tc.want {
				t.Fatalf("%s, want %s: %+v", got.Outcome, tc.want, got.Entry)
			}
			if tc.next > 0 && !got.Next.Equal(zero.Add(tc.next)) {
				t.Errorf("next %s, want %s", got.Next.Sub(zero), tc.next)
			}
		})
	}
}

func TestTheIntervalsAreThoseOfTheDescription(t *testing.T) {
	for name, tc := range map[string]struct {
		spread float64
		want   []time.Duration
	}{
		"without jitter":     {0, []time.Duration{2, 4, 8, 16, 32, 60, 60}},
		"with the whole one": {1, []time.Duration{4, 8, 16, 32, 64, 120, 120}},
	} {
		t.Run(name, func(t *testing.T) {
			e := Entry{UID: "uid"}
			var got []time.Duration
			for i := range 9 {
				d, next, _ := DefaultPolicy().Decide(e, true, Request{Operation: RecordFailure, Application: "app", Attempt: i + 1, Now: zero, Jitter: tc.spread})
				if e = *next; i >= 2 {
					got = append(got, d.Next.Sub(zero)/time.Minute)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpeningIsToldOnce(t *testing.T) {
	opened := 0
	e := Entry{UID: "uid"}
	for i := range 6 {
		d, next, _ := DefaultPolicy().Decide(e, true, failed(i+1))
		if e = *next; d.Opened {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("told %d times", opened)
	}
}

func TestKeysAreThoseOfTheDescriptionAndFit(t *testing.T) {
	if got := Key("shop", "web-0"); got != "shop.web-0" {
		t.Error(got)
	}
	long := strings.Repeat("p", 250)
	a, b := Key("shop", long+"a"), Key("shop", long+"b")
	if a == b || len(a) != maxKey || len(b) != maxKey || !strings.HasPrefix(a, "shop.pppp") {
		t.Errorf("%q and %q", a, b)
	}
}
