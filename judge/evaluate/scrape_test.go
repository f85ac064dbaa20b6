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
