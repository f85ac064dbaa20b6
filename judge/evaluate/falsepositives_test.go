package evaluate

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// releases is how many releases are simulated for each case. The more, the closer is
// the bound of the test to the stated rate: go test ./judge/evaluate -run FalsePositives -releases 1000.
var releases = flag.Int("releases", 60, "simulated releases for each kind of metric")

// mostFalsePositives is exceeded by chance in one of 1000 runs, if each of n releases has a
// false positive with the probability rate.
func mostFalsePositives(n int, rate float64) int {
	probability := math.Pow(1-rate, float64(n))
	for k, below := 0, probability; ; k++ {
		if below >= 0.999 {
			return k
		}
		probability *= float64(n-k) / float64(k+1) * rate / (1 - rate)
		below += probability
	}
}

func TestTheBoundOfFalsePositivesIsABinomialQuantile(t *testing.T) {
	for _, c := range []struct{ n, want int }{{60, 4}, {100, 5}, {300, 10}, {780, 18}} {
		if got := mostFalsePositives(c.n, 0.01); got != c.want {
			t.Errorf("%d of %d releases, want %d", got, c.n, c.want)
		}
	}
}

func TestFalsePositivesOfReleasesWithoutAChangeAreWithinTheStatedRate(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates releases with 60 looks for each kind of metric")
	}
	const look = 15 * time.Minute // 60 looks
	total, all, inconclusives := 0, 0, int64(0)
	for name, c := range map[string]struct {
		world world
		data  func(world) Data
	}{
		"Ratio, independent errors":                                {world{new: 2, old: 3, load: 5, share: 0.02}, ratioOf(look)},
		"Ratio, errors in bursts":                                  {world{new: 2, old: 3, load: 5, share: 0.02, dispersion: 3}, ratioOf(look)},
		"Ratio, one new pod, few errors in large bursts":           {world{new: 1, old: 2, load: 2, share: 0.01, dispersion: 6}, ratioOf(look)},
		"Ratio, pods that differ":                                  {world{new: 2, old: 4, load: 20, share: 0.02, heterogeneity: 0.15, dispersion: 2}, ratioOf(look)},
		"Ratio, against the time before":                           {world{new: 2, old: 2, load: 5, share: 0.02, dispersion: 3, before: true}, ratioOf(look)},
		"Ratio, few requests":                                      {world{new: 2, old: 2, load: 0.1, share: 0.05}, ratioOf(look)},
		"Ratio, stops of the machine":                              {world{new: 2, old: 3, load: 5, share: 0.001, stops: 0.5}, ratioOf(look)},
		"Ratio, stops, against the time before":                    {world{new: 2, old: 2, load: 5, share: 0.001, stops: 0.5, before: true}, ratioOf(look)},
		"CPU per request":                                          {world{new: 2, old: 3, load: 10, noise: 0.05, autocorrelation: 0.5, heterogeneity: 0.03}, cpuOf(look)},
		"CPU per request, twice the load, against the time before": {world{new: 2, old: 2, load: 10, noise: 0.05, autocorrelation: 0.5, heterogeneity: 0.03, before: true, ramp: 2}, cpuOf(look)},
		"Latency, independent requests":                            {world{new: 2, old: 3, load: 3}, latencyOf(look)},
		"Latency, autocorrelated, pods that differ":                {world{new: 2, old: 3, load: 3, autocorrelation: 0.7, noise: 0.08, heterogeneity: 0.05}, latencyOf(look)},
		"Gauge, independent values":                                {world{new: 2, old: 3, noise: 0.1, heterogeneity: 0.03}, gaugeOf(look)},
		"Gauge, autocorrelated":                                    {world{new: 2, old: 3, noise: 0.06, autocorrelation: 0.8, heterogeneity: 0.05}, gaugeOf(look)},
		"Gauge, autocorrelated, one pod each":                      {world{new: 1, old: 1, noise: 0.06, autocorrelation: 0.8, heterogeneity: 0.05}, gaugeOf(look)},
		"Gauge, against the time before":                           {world{new: 2, old: 2, noise: 0.06, autocorrelation: 0.8, heterogeneity: 0.05, before: true}, gaugeOf(look)},
		"Ratio, new pods start one after another":                  {world{new: 4, old: 3, load: 5, share: 0.02, dispersion: 3, rollout: 300}, ratioOf(look)},
		"Ratio, few requests, new pods start one after another":    {world{new: 4, old: 2, load: 0.1, share: 0.05, rollout: 300}, ratioOf(look)},
		"Counter, new pods start one after another":                {world{new: 4, old: 3, load: 0.2, dispersion: 4, rollout: 300}, counterOf(look)},
		"Counter, independent events":                              {world{new: 2, old: 3, load: 0.2}, counterOf(look)},
		"Counter, events in bursts":                                {world{new: 2, old: 3, load: 0.2, dispersion: 4}, counterOf(look)},
	} {
		t.Run(name, func(t *testing.T) {
			c.world.factor = 1
			var inconclusive atomic.Int64
			failed := simulate(*releases, c.world, func(w world) bool {
				r := looks(c.data(w), look, "1%")
				if r.Reason == v1alpha1.ReasonInconclusive {
					inconclusive.Add(1)
				}
				return r.Verdict == v1alpha1.VerdictFail
			})
			t.Logf("%d false positives and %d inconclusive in %d releases", failed, inconclusive.Load(), *releases)
			if limit := mostFalsePositives(*releases, 0.01); failed > limit {
				t.Errorf("%d false positives in %d releases, want at most %d for a rate of 1 %%", failed, *releases, limit)
			}
			total += failed
			inconclusives += inconclusive.Load()
			all += *releases
		})
	}
	if limit := mostFalsePositives(all, 0.01); total > limit {
		t.Errorf("%d false positives in %d releases of all kinds, want at most %d for a rate of 1 %%", total, all, limit)
	}
	if limit := mostFalsePositives(all, 0.02); int(inconclusives) > limit {
		t.Errorf("%d of %d releases without a change are inconclusive, want at most %d for 2 %%", inconclusives, all, limit)
	}
}

func TestAChangeIsFoundWithinTheLooksOfTheDocumentation(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates releases")
	}
	const look = 5 * time.Minute
	for name, c := range map[string]struct {
		world world
		data  func(world) Data
		// looks within which at least nine of ten releases fail.
		looks int32
	}{
		"Ratio, five times the errors": {world{new: 2, old: 3, load: 20, share: 0.02, factor: 5}, ratioOf(look), 3},
		"Ratio, 2 % errors":            {world{new: 2, old: 3, load: 20, share: 0.001, factor: 20}, ratioOf(look), 5},
		"Latency, 30 % more":           {world{new: 2, old: 3, load: 5, factor: 1.3}, latencyOf(look), 20},
		"Latency, twice":               {world{new: 2, old: 3, load: 5, factor: 2}, latencyOf(look), 6},
		"Gauge, 50 % more":             {world{new: 2, old: 3, noise: 0.05, autocorrelation: 0.5, heterogeneity: 0.03, factor: 1.5}, gaugeOf(look), 12},
		"Counter, five times":          {world{new: 2, old: 3, load: 0.3, factor: 5}, counterOf(look), 5},
	} {
		t.Run(name, func(t *testing.T) {
			n := *releases
			found := simulate(n, c.world, func(w world) bool {
				r := looks(c.data(w), look, "1%")
				return r.Verdict == v1alpha1.VerdictFail && r.Looks <= c.looks
			})
			t.Logf("found within %d looks in %d of %d releases", c.looks, found, n)
			if found < n*9/10 {
				t.Errorf("found within %d looks in %d of %d releases, want 90 %%", c.looks, found, n)
			}
		})
	}
}

func TestAFaultThatBeginsDuringTheAnalysisIsFound(t *testing.T) {
	for _, c := range []struct {
		load, share, factor, at float64
		look                    time.Duration
	}{
		{load: 100, share: 0.001, factor: 100, at: 165, look: 5 * time.Minute},
		{load: 20, share: 0.001, factor: 100, at: 165, look: 5 * time.Minute},
		{load: 20, share: 0.001, factor: 100, at: 1000, look: 30 * time.Minute},
		{load: 5, share: 1e-5, factor: 3e4, at: 225, look: 5 * time.Minute},
		{load: 5, share: 1e-5, factor: 1e5, at: 225, look: 5 * time.Minute},
		{load: 5, share: 1e-5, factor: 3e4, at: 120, look: 5 * time.Minute},
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: c.load, share: c.share, factor: c.factor, faultAt: c.at}
		if r := looks(w.ratio(c.look), c.look, "0.1%"); r.Verdict != v1alpha1.VerdictFail {
			t.Errorf("%+v: %s (%s), want a fail", c, r.Verdict, r.Message)
		}
	}
}

func ratioOf(look time.Duration) func(world) Data { return func(w world) Data { return w.ratio(look) } }
func latencyOf(look time.Duration) func(world) Data {
	return func(w world) Data { return w.latency(look) }
}
func gaugeOf(look time.Duration) func(world) Data { return func(w world) Data { return w.gauge(look) } }
func cpuOf(look time.Duration) func(world) Data   { return func(w world) Data { return w.cpu(look) } }
func counterOf(look time.Duration) func(world) Data {
	return func(w world) Data { return w.counter(look) }
}

// simulate counts the releases for which found is true.
func simulate(n int, w world, found func(world) bool) int {
	var count atomic.Int64
	w.eachRelease(n, func(i int) *rand.PCG { return rand.NewPCG(uint64(i)+1, 18) }, func(_ int, w world) {
		if found(w) {
			count.Add(1)
		}
	})
	return int(count.Load())
}

// eachRelease simulates n releases on all processors. Each has its own seed, so that the result
// does not depend on the machine.
func (w world) eachRelease(n int, seed func(i int) *rand.PCG, simulated func(i int, w world)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				one := w
				one.rand = rand.New(seed(i))
				simulated(i, one)
			}
		})
	}
	wait.Wait()
}

func ExampleEvaluate() {
	w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, share: 0.002, factor: 35}
	r := looks(w.ratio(5*time.Minute), 5*time.Minute, "1%")
	fmt.Println(r.Verdict, r.Reason)
	fmt.Println(r.Message)
	// Output:
	// fail MetricWorse
	// errors: 6.8 % of new pods against 0.058 % of old pods
}
