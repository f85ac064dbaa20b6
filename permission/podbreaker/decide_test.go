package podbreaker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var zero = time.Unix(1<<30, 0).UTC()

// apply applies the requests to a pod without an entry and returns the last decision.
func apply(t *testing.T, steps ...Request) Decision {
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

func deny(attempt int) Request {
	return Request{Operation: RecordFailure, Application: "app", Attempt: attempt, Denied: true}
}

func fail(attempt int) Request {
	return Request{Operation: RecordFailure, Application: "app", Attempt: attempt}
}

func acquire(holder string, after time.Duration) Request {
	return Request{Operation: Acquire, Holder: holder, Now: zero.Add(after)}
}

// ahead returns the request on a clock that is 40 minutes ahead.
func ahead(r Request) Request {
	r.Now = zero.Add(40 * time.Minute)
	return r
}

func TestDecide(t *testing.T) {
	threeDenied := []Request{deny(1), deny(2), deny(3)}
	threeFailed := []Request{fail(1), fail(2), fail(3)}
	for name, tc := range map[string]struct {
		steps []Request
		want  State
		next  time.Duration // after zero
	}{
		"no unsuccessful attempt":                           {[]Request{acquire("a", 0)}, MayBegin, 0},
		"denied once":                                       {[]Request{deny(1), acquire("a", 0)}, MayBegin, 0},
		"denied twice":                                      {[]Request{deny(1), deny(2), acquire("a", 0)}, MayBegin, 0},
		"denied three times":                                {append(threeDenied, acquire("a", 0)), OpenDenied, 0},
		"denied three times, a day later":                   {append(threeDenied, acquire("a", 24*time.Hour)), OpenDenied, 0},
		"denied three times, then reset":                    {append(threeDenied, Request{Operation: Reset}, acquire("a", 0)), MayBegin, 0},
		"reset, then the same denial recorded again":        {append(threeDenied, Request{Operation: Reset}, deny(3), acquire("a", 0)), MayBegin, 0},
		"reset, then the same denial and two others":        {append(threeDenied, Request{Operation: Reset}, deny(3), deny(4), deny(5), acquire("a", 0)), MayBegin, 0},
		"reset, then denied three times":                    {append(threeDenied, Request{Operation: Reset}, deny(4), deny(5), deny(6), acquire("a", 0)), OpenDenied, 0},
		"the same denial recorded three times":              {[]Request{deny(1), deny(1), deny(1), acquire("a", 0)}, MayBegin, 0},
		"an attempt that was not recorded counts":           {[]Request{deny(1), deny(3), acquire("a", 0)}, OpenDenied, 0},
		"failed twice":                                      {[]Request{fail(1), fail(2), acquire("a", 0)}, MayBegin, 0},
		"failed three times":                                {append(threeFailed, acquire("a", 0)), OpenFailed, 2 * time.Minute},
		"failed three times, just before the interval ends": {append(threeFailed, acquire("a", 2*time.Minute-1)), OpenFailed, 2 * time.Minute},
		"failed three times, after the interval":            {append(threeFailed, acquire("a", 2*time.Minute)), MayBegin, 0},
		"another caller has the breaker":                    {append(threeFailed, acquire("a", 2*time.Minute), acquire("b", 2*time.Minute)), Busy, 2*time.Minute + holdTime},
		"the holder acquires again":                         {append(threeFailed, acquire("a", 2*time.Minute), acquire("a", 2*time.Minute)), MayBegin, 0},
		"the holder timed out":                              {append(threeFailed, acquire("a", 2*time.Minute), acquire("b", 2*time.Minute+holdTime)), MayBegin, 0},
		"the attempt after the interval fails":              {append(threeFailed, acquire("a", 2*time.Minute), fail(4), acquire("b", 4*time.Minute-1)), OpenFailed, 4 * time.Minute},
		"the attempt after the interval succeeds":           {append(threeFailed, acquire("a", 2*time.Minute), Request{Operation: RecordSuccess}, fail(5), acquire("b", 0)), MayBegin, 0},
		"success, then an attempt after an acquire fails":   {append(threeFailed, acquire("a", 2*time.Minute), Request{Operation: RecordSuccess}, acquire("a", 2*time.Minute), fail(5), acquire("b", 0)), MayBegin, 0},
		"success, then an attempt is denied":                {append(threeFailed, acquire("a", 2*time.Minute), Request{Operation: RecordSuccess}, acquire("a", 2*time.Minute), deny(5), acquire("b", 2*time.Minute)), MayBegin, 0},
		"success, then attempts are denied three times":     {append(threeFailed, acquire("a", 2*time.Minute), Request{Operation: RecordSuccess}, acquire("a", 2*time.Minute), deny(5), deny(6), deny(7), acquire("b", 2*time.Minute)), OpenDenied, 0},
		"denied after a denial of another set":              {[]Request{{Operation: RecordFailure, Application: "other", Attempt: 1, Denied: true}, deny(4), acquire("a", 0)}, MayBegin, 0},
		"failed twice and denied twice":                     {[]Request{fail(1), deny(2), fail(3), deny(4), acquire("a", 0)}, MayBegin, 0},
		"three calls fail without an application":           {[]Request{{Operation: RecordFailure, Call: "1"}, {Operation: RecordFailure, Call: "2"}, {Operation: RecordFailure, Call: "3"}, acquire("a", 0)}, OpenFailed, 2 * time.Minute},
		"one failed call recorded three times":              {[]Request{{Operation: RecordFailure, Call: "1"}, {Operation: RecordFailure, Call: "1"}, {Operation: RecordFailure, Call: "1"}, acquire("a", 0)}, MayBegin, 0},
		"failed three times on a clock that was ahead":      {[]Request{ahead(fail(1)), ahead(fail(2)), ahead(fail(3)), acquire("a", 0)}, MayBegin, 0},
		"failed three times on a clock with a small skew":   {append(threeFailed, acquire("a", -time.Minute)), OpenFailed, 2 * time.Minute},
		"denied after failures on a clock that was ahead":   {[]Request{ahead(fail(1)), ahead(fail(2)), ahead(fail(3)), deny(4), acquire("a", 0)}, MayBegin, 0},
		"acquired by a caller whose clock was ahead":        {[]Request{ahead(acquire("a", 0)), acquire("b", 0)}, MayBegin, 0},
		"acquired by a caller with a small skew":            {[]Request{acquire("a", time.Minute), acquire("b", 0)}, Busy, time.Minute + holdTime},
		"denials of two sets":                               {[]Request{deny(1), {Operation: RecordFailure, Application: "other", Attempt: 1, Denied: true}, acquire("a", 0)}, MayBegin, 0},
	} {
		t.Run(name, func(t *testing.T) {
			steps := append([]Request(nil), tc.steps...)
			got := apply(t, steps...)
			if got.State != tc.want {
				t.Fatalf("%s, want %s: %+v", got.State, tc.want, got.Entry)
			}
			if tc.next > 0 && !got.Next.Equal(zero.Add(tc.next)) {
				t.Errorf("next %s, want %s", got.Next.Sub(zero), tc.next)
			}
		})
	}
}

func TestTheIntervalsFollowTheBackoff(t *testing.T) {
	for name, tc := range map[string]struct {
		jitter float64
		want   []time.Duration
	}{
		"without jitter":   {0, []time.Duration{2, 4, 8, 16, 32, 60, 60}},
		"with full jitter": {1, []time.Duration{4, 8, 16, 32, 64, 120, 120}},
	} {
		t.Run(name, func(t *testing.T) {
			e := Entry{UID: "uid"}
			var got []time.Duration
			for i := range 9 {
				d, next, _ := DefaultPolicy().Decide(e, true, Request{Operation: RecordFailure, Application: "app", Attempt: i + 1, Now: zero, Jitter: tc.jitter})
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

func TestOpeningIsReportedOnce(t *testing.T) {
	opened := 0
	e := Entry{UID: "uid"}
	for i := range 6 {
		d, next, _ := DefaultPolicy().Decide(e, true, fail(i+1))
		if e = *next; d.Opened {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("reported %d times, want 1", opened)
	}
}

func TestKeysHaveTheDocumentedFormAndFit(t *testing.T) {
	if got := Key("shop", "web-0"); got != "shop.web-0" {
		t.Error(got)
	}
	long := strings.Repeat("p", 250)
	a, b := Key("shop", long+"a"), Key("shop", long+"b")
	if a == b || len(a) != maxKey || len(b) != maxKey || !strings.HasPrefix(a, "shop.pppp") {
		t.Errorf("%q and %q", a, b)
	}
}
