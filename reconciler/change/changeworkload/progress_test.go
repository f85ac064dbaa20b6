package changeworkload

import (
	"testing"
	"time"
)

func TestAReleaseWithoutProgressIsReportedLessAndLessOften(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want time.Duration
	}{
		"a release that begins":               {release(1), 30 * time.Second},
		"9 minutes without a batch":           {release(1, after(9*time.Minute)), 30 * time.Second},
		"10 minutes without a batch":          {release(1, after(10*time.Minute)), time.Minute},
		"an hour without a batch":             {release(1, after(time.Hour)), 4 * time.Minute},
		"a batch, then an hour":               {release(1, judged(1, ""), after(time.Hour)), 4 * time.Minute},
		"a day":                               {release(1, after(24*time.Hour)), 32 * time.Minute},
		"a year":                              {release(1, after(365*24*time.Hour)), 32 * time.Minute},
		"held for a day":                      {release(1, judged(1, "done"), heldAsUnjudged, after(24*time.Hour)), 32 * time.Minute},
		"the state changed a minute ago":      {release(1, after(time.Hour), enteredAt(59*time.Minute)), 30 * time.Second},
		"a batch a minute ago, after an hour": {release(1, judged(1, ""), batchAt(59*time.Minute), after(time.Hour)), 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := eventInterval(tc.in); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func enteredAt(d time.Duration) func(*Input) {
	return func(in *Input) { in.ChangeWorkload.Status.EntryTimeUnix = t0.Add(d).Unix() }
}

func batchAt(d time.Duration) func(*Input) {
	return func(in *Input) { in.ChangePods[len(in.ChangePods)-1].CreationTimestamp.Time = t0.Add(d) }
}
