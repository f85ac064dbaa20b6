package evaluate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// With a scrape every minute, two cells are two minutes.
func TestTwoMinutesOfFailuresAreNoDisturbance(t *testing.T) {
	const length = 5 * time.Minute
	for seed := range uint64(20) {
		w := world{rand: rand.New(rand.NewPCG(seed+1, 18)), new: 2, old: 3, load: 5, share: 1e-5, factor: 1e5, faultAt: 175}
		if r := looks(w.ratio(length).every(4), length, "1%"); r.Verdict != v1alpha1.VerdictFail {
			t.Errorf("seed %d: all requests of the last two minutes fail: %s (%s), want a fail", seed+1, r.Verdict, r.Message)
		}
	}
}

// The failures of new pods only are a disturbance if they are shorter than a minute or a tenth of the analysis.
func TestAShortDisturbanceOfNewPodsIsNoFault(t *testing.T) {
	for name, c := range map[string]struct {
		length time.Duration
		// The part failed of the new requests fails for some seconds.
		from, to, failed float64
		want             v1alpha1.Verdict
	}{
		"48 of 60 seconds":           {10 * time.Minute, 420, 540, 0.4, v1alpha1.VerdictPass},
		"96 of 60 seconds":           {10 * time.Minute, 420, 540, 0.8, v1alpha1.VerdictFail},
		"a tenth of a long analysis": {30 * time.Minute, 1620, 1800, 0.95, v1alpha1.VerdictPass},
	} {
		d, load, end := world{}.ratio(0), 5.0, c.length.Seconds()
		add := func(side *Pair, pod string, from float64, bad func(t float64) float64) {
			addRequests(side, map[string]string{"pod": pod}, from, end, func(t float64) float64 { return load * (t - from) }, bad)
		}
		for _, pod := range []string{"3", "7"} { // whose scrapes are at the beginning of cells
			add(&d.New, "new-"+pod, -60, func(t float64) float64 { return load * c.failed * (min(max(t, c.from), c.to) - c.from) })
			add(&d.Old, "old-"+pod, -600, func(float64) float64 { return 0 })
		}
		if r := looks(d.every(4), c.length, "1%"); r.Verdict != c.want {
			t.Errorf("%s: %s (%s), want %s", name, r.Verdict, r.Message, c.want)
		}
	}
}
