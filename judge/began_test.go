package judge

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// Which pods began follows from the samples until the look, so that a record is recomputed from the
// metrics alone.
func TestALookAtPodsThatBeganIsRecomputedFromItsRecord(t *testing.T) {
	const before, first, end = -10 * time.Minute, 15 * time.Second, 5 * time.Minute
	base := slices.Concat(traffic("old-1", before, end, 0, end), traffic("old-2", before, end, 0, end), traffic("new-1", first, end, 0, end))
	base = append(base, restarts("old-1", before, end), restarts("old-2", before, end))
	for name, c := range map[string]struct {
		restarts float64
		// at is the end of the analysis, or the look before it that found the fail.
		at   time.Duration
		want v1alpha1.Verdict
	}{
		"two restarts before the first scrape": {2, 15 * time.Second, v1alpha1.VerdictFail},
		"one restart before the first scrape":  {1, end, v1alpha1.VerdictPass},
	} {
		t.Run(name, func(t *testing.T) {
			reader := shop{append(slices.Clone(base), restarted("new-1", first, end, c.restarts))}
			target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
			var previous *v1alpha1.Record
			for look := 15 * time.Second; look <= end; look += 15 * time.Second {
				r := Look(t.Context(), reader, v1alpha1.MetricCheckSpec{}, target, at.Add(end), previous, at.Add(look))
				checkRecomputed(t, reader, r)
				if previous = &r; r.Final {
					break
				}
			}
			if previous.Verdict != c.want || !previous.LookTime.Equal(&metav1.Time{Time: at.Add(c.at)}) {
				t.Errorf("verdict %s (%s) at %s, want %s at %s", previous.Verdict, previous.Message, previous.LookTime, c.want, at.Add(c.at))
			}
		})
	}
}
