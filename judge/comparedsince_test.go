package judge

import (
	"testing"
	"time"
)

func TestASlowReleaseIsComparedOverTheLastAnalysisDurationAndNeverInTheFuture(t *testing.T) {
	const duration = 5 * time.Minute
	for name, c := range map[string]struct {
		// until, now and want are relative to the start of the release.
		until, now, want time.Duration
	}{
		"the first batch":                     {duration, time.Minute, 0},
		"a batch soon after the first":        {2 * duration, 7 * time.Minute, 0},
		"a batch of a slow release":           {2*duration + time.Second, 7 * time.Minute, duration + time.Second},
		"a batch of a slow release, at once":  {time.Hour, 55 * time.Minute, 55 * time.Minute},
		"a batch of a slow release, too soon": {time.Hour, 55*time.Minute - time.Second, 55*time.Minute - time.Second},
		"the duration was longer before":      {6 * duration, 2 * time.Minute, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := comparedSince(at, at.Add(c.until), at.Add(c.now), duration).Sub(at); got != c.want {
				t.Errorf("compared since %s, want %s", got, c.want)
			}
		})
	}
}
