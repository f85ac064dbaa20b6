package evaluate

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

func TestTheSharesOfAllLooksOfAProbationAreAtMostTheRate(t *testing.T) {
	sum := 0.0
	for look := int32(1); look <= 10000; look++ {
		p := &Probation{Look: look}
		sum += 1 / p.factor()
	}
	if sum > 1 || sum < 0.99 {
		t.Errorf("the shares of 10000 looks are %.4f of the rate, want nearly all of it", sum)
	}
	var analysis *Probation
	if analysis.factor() != 1 {
		t.Error("the threshold of the analysis changed")
	}
}

// probationLook evaluates look n during a probation: the time look is compared with the 10 minutes
// before the release, whose samples are moved to just before it.
func probationLook(d Data, look time.Duration, n int32) v1alpha1.Record {
	at := time.UnixMilli(int64(start * 1000))
	d.ReferenceBefore = true
	return Evaluate(Input{
		Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)},
		Metrics: []Data{d}, Now: at.Add(look), End: at.Add(look), Probation: &Probation{Start: at, Success: at, Look: n},
	}, nil)
}

func TestFalsePositivesOverAllLooksOfAProbationAreWithinTheStatedRate(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates releases with 20 looks")
	}
	const look, looksOfRelease = 20 * time.Minute, 20
	for name, w := range map[string]world{
		"independent errors": {new: 2, old: 3, load: 2, share: 0.02, before: true},
		"errors in bursts":   {new: 2, old: 3, load: 2, share: 0.02, dispersion: 3, before: true},
		"few requests":       {new: 2, old: 2, load: 0.1, share: 0.05, before: true},
	} {
		t.Run(name, func(t *testing.T) {
			w.factor = 1
			failed := simulate(*releases, w, func(w world) bool {
				old := w.ratio(look).Old // the same reference at all looks
				for n := int32(1); n <= looksOfRelease; n++ {
					d := w.ratio(look)
					d.Old = old
					if probationLook(d, look, n).Verdict == v1alpha1.VerdictFail {
						return true
					}
				}
				return false
			})
			t.Logf("%d false positives in %d releases", failed, *releases)
			if limit := mostFalsePositives(*releases, 0.01); failed > limit {
				t.Errorf("%d false positives in %d releases, want at most %d for a rate of 1 %%", failed, *releases, limit)
			}
		})
	}
}

func TestALateLookFindsFiveTimesTheErrors(t *testing.T) {
	const look = 20 * time.Minute
	for n, want := range map[int32]int{1: 9, 20: 9, 75: 9} {
		found := simulate(10, world{new: 2, old: 3, load: 2, share: 0.02, factor: 5, before: true}, func(w world) bool {
			return probationLook(w.ratio(look), look, n).Verdict == v1alpha1.VerdictFail
		})
		if found < want {
			t.Errorf("look %d found %d of 10 bad releases, want %d", n, found, want)
		}
	}
}

// In hours some of many pods restart without a fault of the version.
func TestLateHealthNeedsRestartsOfManyPodsAgainAndAgain(t *testing.T) {
	restarting := func(pods, restarted, times int, from float64) []samples.Series {
		var out []samples.Series
		for i := range pods {
			s := samples.Series{Labels: map[string]string{"__name__": "kube_pod_container_status_restarts_total", "pod": string(rune('a'+i%26)) + string(rune('a'+i/26))}}
			for k := range 60 {
				v := 0.0
				if i < restarted {
					v = float64(min(times, k/10))
				}
				s.Points = append(s.Points, samples.Point{T: from + float64(60*k), V: v})
			}
			out = append(out, s)
		}
		return out
	}
	for name, c := range map[string]struct {
		pods, restarted, times, oldRestarted int
		want                                 bool
	}{
		"no restarts":                         {20, 0, 0, 0, false},
		"all pods once":                       {20, 20, 1, 0, false},
		"one of 20 pods twice":                {20, 1, 2, 0, false},
		"two of 20 pods twice":                {20, 2, 2, 0, true},
		"one of three pods twice":             {3, 1, 2, 0, true},
		"the only pod":                        {1, 1, 2, 0, true},
		"as many of the old pods":             {20, 6, 2, 6, false},
		"half as many of the old pods":        {20, 6, 2, 3, false},
		"more than twice those of the old":    {20, 7, 2, 3, true},
		"many pods, few of them again":        {200, 19, 3, 0, false},
		"many pods, a tenth of them again":    {200, 20, 3, 0, true},
		"no pod at all":                       {0, 0, 0, 0, false},
		"old pods only, and those restarting": {0, 0, 0, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.UnixMilli(int64(start * 1000))
			in := Input{Now: at.Add(time.Hour), Probation: &Probation{Start: at, Success: at, Look: 1}}
			var d Data
			d.New.All = restarting(c.pods, c.restarted, c.times, start)
			d.Old.All = restarting(20, c.oldRestarted, 2, start-3600)
			if o := probationHealth(in, d); (o.reason != "") != c.want {
				t.Errorf("reason %q (%s), want a fail: %t", o.reason, o.message, c.want)
			}
		})
	}
}

func TestARestartThatTwoKubeStateMetricsShowCountsOnceDuringProbation(t *testing.T) {
	at := time.UnixMilli(int64(start * 1000))
	for name, c := range map[string]struct {
		later  []float64
		killed bool
		want   bool
	}{
		"one restart":              {[]float64{600}, false, false},
		"two restarts":             {[]float64{600, 900}, false, true},
		"one restart, an OOM kill": {[]float64{600}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Now: at.Add(time.Hour), Probation: &Probation{Start: at.Add(-5 * time.Minute), Success: at, Look: 1}}
			var d Data
			for _, exporter := range []string{"a", "b"} {
				p := podLife{name: "new-1", uid: "a", created: -200, first: -190, last: 3600, later: c.later, exporter: exporter}
				d.New.All = append(d.New.All, p.series()...)
				if c.killed {
					kill := podLife{name: "new-1", uid: "a", created: -200, first: 600, last: 3600, killed: true, exporter: exporter}
					d.New.All = append(d.New.All, slices.DeleteFunc(kill.series(), func(s samples.Series) bool { return s.Labels["__name__"] != lastTerminated })...)
				}
			}
			if o := probationHealth(in, d); (o.reason != "") != c.want {
				t.Errorf("%q %q, want a fail: %t", o.reason, o.message, c.want)
			}
		})
	}
}

// The old pods of a DaemonSet are unknown after their deletion. A node that is added during probation
// gets a pod that restarts at its start as the others did.
func TestALaterPodIsComparedWithThoseOfItsVersionIfTheOldOnesAreUnknown(t *testing.T) {
	at := time.UnixMilli(int64(start * 1000))
	pod := func(name string, from, restarts float64) []samples.Series {
		p := podLife{name: name, created: from - 10, first: from, last: 3600, restarts: restarts}
		return p.series()
	}
	for name, c := range map[string]struct {
		others float64
		want   bool
	}{
		"the others restarted as often": {2, false},
		"no other pod restarted":        {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Now: at.Add(time.Hour), Probation: &Probation{Start: at.Add(-5 * time.Minute), Success: at, Look: 1}}
			var d Data
			d.New.All = slices.Concat(pod("a", -120, c.others), pod("b", -90, c.others), pod("later", 1200, 2))
			if o := probationHealth(in, d); (o.reason != "") != c.want {
				t.Errorf("%q %q", o.reason, o.message)
			}
		})
	}
}
