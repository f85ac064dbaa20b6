package evaluate

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// targetOf returns a counter of one target that had a value before the range, and has a rate.
func targetOf(pod, service, code string, from, before, rate float64) samples.Series {
	return seriesOf(map[string]string{"pod": pod, "service": service, "code": code}, from, 290, func(t float64) float64 { return before + rate*(t-from) })
}

// Two Services that select a pod are two targets, which are scraped at different times.
func TestTheFirstValueOfTheSecondTargetOfAPodDoesNotCount(t *testing.T) {
	at := time.UnixMilli(int64(start * 1000))
	for name, c := range map[string]struct {
		// second is the first sample of the second target, every its interval.
		second, every float64
		want          map[int]float64
	}{
		"10 s after the first one":        {-585, 15, map[int]float64{-40: 0, -39: 150, -38: 150}},
		"an interval after the start":     {-584.2, 15, map[int]float64{-40: 0, -39: 75, -38: 150}},
		"an interval of a minute":         {-545, 60, map[int]float64{-40: 0, -39: 75, -37: 75}},
		"a series that begins much later": {-505, 15, map[int]float64{-40: 0, -35: 75, -34: 1e6 + 75, -33: 150}},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := targetOf("old-0", "a", "200", -595, 1e6, 5), targetOf("old-0", "b", "200", c.second, 1e6, 5)
			if c.every > 15 {
				var points []samples.Point
				for i := 0; i < len(second.Points); i += int(c.every / 15) {
					points = append(points, second.Points[i])
				}
				second.Points = points
			}
			d := Data{Old: Pair{All: []samples.Series{first, second, targetOf("old-1", "a", "200", -595, 1e6, 0)}}}
			_, counts, _ := d.read(newFrame(Input{Target: v1alpha1.Target{StartTime: metav1.NewTime(at)}, Now: at.Add(5 * time.Minute), End: at.Add(5 * time.Minute)}, d), all)
			for cell, want := range c.want {
				if got := counts.sums()[cell]; got != want {
					t.Errorf("cell %d has %g requests, want %g", cell, got, want)
				}
			}
		})
	}
}

func TestASecondTargetOfEachPodDoesNotChangeTheVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		// share is the share of failed requests of the new pods; that of the old ones is 1 %.
		share float64
		want  v1alpha1.Verdict
	}{
		"a bad release":  {0.04, v1alpha1.VerdictFail},
		"a good release": {0.01, v1alpha1.VerdictPass},
	} {
		for _, targets := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d targets", name, targets), func(t *testing.T) {
				d := Data{Metric: catalog.Metric{Signal: catalog.Errors, Metric: v1alpha1.Metric{Name: "errors", Kind: v1alpha1.KindRatio,
					Direction: v1alpha1.DirectionHigher, SmallestChange: &v1alpha1.Change{Relative: "50%", Absolute: "0.005"}}}}
				for target := range targets {
					service, phase := string(rune('a'+target)), 10*float64(target)
					for i := range 2 {
						old, fresh := fmt.Sprintf("old-%d", i), fmt.Sprintf("new-%d", i)
						bad := targetOf(old, service, "500", -595+phase, 200+20000*float64(i), 0.1)
						d.Old.Bad = append(d.Old.Bad, bad)
						d.Old.All = append(d.Old.All, bad, targetOf(old, service, "200", -595+phase, 1e6, 9.9))
						bad = targetOf(fresh, service, "500", -10+phase, 0, 10*c.share)
						d.New.Bad = append(d.New.Bad, bad)
						d.New.All = append(d.New.All, bad, targetOf(fresh, service, "200", -10+phase, 0, 10*(1-c.share)))
					}
				}
				if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
					t.Errorf("%s (%s), want %s", r.Verdict, r.Metrics[0].Message, c.want)
				}
			})
		}
	}
}
