package evaluate

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// newSinceOf returns the times since when pods are new.
func newSinceOf(pods []string, at float64) map[string]metav1.Time {
	out := map[string]metav1.Time{}
	for _, pod := range pods {
		out[pod] = metav1.NewTime(time.UnixMilli(int64((start + at) * 1000)))
	}
	return out
}

// seriesOf returns a series with a sample each 15 s.
func seriesOf(labels map[string]string, from, to float64, value func(t float64) float64) samples.Series {
	s := samples.Series{Labels: labels}
	for t := from; t <= to; t += 15 {
		s.Points = append(s.Points, samples.Point{T: start + t, V: value(t)})
	}
	return s
}

// addRequests adds the good and the failed requests of a pod to those of its side.
func addRequests(side *Pair, labels map[string]string, from, to float64, all, bad func(t float64) float64) {
	of := func(code string, value func(t float64) float64) samples.Series {
		with := maps.Clone(labels)
		with["code"] = code
		return seriesOf(with, from, to, value)
	}
	good, failed := of("200", func(t float64) float64 { return all(t) - bad(t) }), of("500", bad)
	side.All, side.Bad = append(side.All, good, failed), append(side.Bad, failed)
}

// The warming functions return the series of a pod that needs ten times as much for some seconds after
// its first sample.

func warmingGauge(pod string, from, to, warming float64) []samples.Series {
	return []samples.Series{seriesOf(map[string]string{"pod": pod}, from, to, func(t float64) float64 {
		if t-from <= warming && warming > 0 {
			return 1000
		}
		return 100
	})}
}

func warmingCPU(pod string, from, to, warming float64) []samples.Series {
	return []samples.Series{seriesOf(map[string]string{"pod": pod}, from, to, func(t float64) float64 {
		return 0.1 * (t - from + 9*math.Min(t-from, warming))
	})}
}

// warmingLatency returns 10 requests a second, which take more than 100 ms while the pod is warming.
func warmingLatency(pod string, from, to, warming float64) []samples.Series {
	var out []samples.Series
	for le, fast := range map[string]float64{"0.05": 5, "0.1": 10, "1": 10, "+Inf": 10} {
		out = append(out, seriesOf(map[string]string{"pod": pod, "le": le}, from, to, func(t float64) float64 {
			if le == "1" || le == "+Inf" {
				return fast * (t - from)
			}
			return fast * math.Max(0, t-from-warming)
		}))
	}
	return out
}

// Three pods replace others. The first sample of each is 15 s later.
func TestTheWarmUpOfAPodThatHasTheNameOfAnEarlierOne(t *testing.T) {
	const end, replaced, first = 300.0, 0.0, 15.0
	for name, c := range map[string]struct {
		kind   v1alpha1.MetricKind
		query  string
		series func(pod string, from, to, warming float64) []samples.Series
	}{
		"a gauge": {v1alpha1.KindGauge, "active{{{pods}}}", warmingGauge},
		"CPU":     {v1alpha1.KindGauge, "cpu_seconds_total{{{pods}}}", warmingCPU},
		"latency": {v1alpha1.KindLatency, "latency_bucket{{{pods}}}", warmingLatency},
	} {
		t.Run(name, func(t *testing.T) {
			judged := func(pods []string, target v1alpha1.Target) (v1alpha1.Record, *v1alpha1.Side) {
				d := Data{Metric: catalog.Metric{WarmUp: true, Metric: v1alpha1.Metric{Name: name, Kind: c.kind, Query: c.query,
					Direction: v1alpha1.DirectionHigher, SmallestChange: &v1alpha1.Change{Relative: "20%"}}}}
				for _, old := range []string{"old-0", "old-1"} {
					d.Old.All = append(d.Old.All, c.series(old, -595, end, 0)...)
				}
				for _, pod := range pods {
					if len(target.NewSince) > 0 {
						for _, s := range c.series(pod, -597, replaced-3, 0) {
							s.Labels["instance"] = "of the earlier pod"
							d.New.All = append(d.New.All, s)
						}
					}
					d.New.All = append(d.New.All, c.series(pod, first, end, 30)...)
				}
				r := looksAt(d, target, 5*time.Minute, "1%")
				return r, r.Metrics[0].New
			}
			names := []string{"web-0", "web-1", "web-2"}
			withNames, want := judged([]string{"new-0", "new-1", "new-2"}, v1alpha1.Target{})
			r, got := judged(names, v1alpha1.Target{NewSince: newSinceOf(names, replaced)})
			if withNames.Verdict == v1alpha1.VerdictFail || r.Verdict == v1alpha1.VerdictFail {
				t.Errorf("%s (%s), with new names %s (%s); want no fail", r.Verdict, r.Message, withNames.Verdict, withNames.Message)
			}
			if got == nil || want == nil || got.Value != want.Value || got.Samples != want.Samples || got.Pods != want.Pods {
				t.Errorf("compared %+v, with new names %+v", got, want)
			}
		})
	}
}

// The pods are replaced one after another. The earlier pod of each name fails requests while it is
// shut down.
func TestRequestsOfAnEarlierPodOfTheSameNameDoNotCountAsNew(t *testing.T) {
	requests := func(pod, code, instance string, from, to, rate float64) samples.Series {
		return seriesOf(map[string]string{"pod": pod, "code": code, "instance": instance}, from, to, func(t float64) float64 { return rate * (t - from) })
	}
	for name, c := range map[string]struct {
		// oldShare and newShare are the shares of failed requests of the earlier and the new pods.
		oldShare, newShare float64
		want               v1alpha1.Verdict
	}{
		"the earlier pods fail requests": {0.5, 0, v1alpha1.VerdictPass},
		"the new pods fail requests":     {0, 0.05, v1alpha1.VerdictFail},
		"no pod fails requests":          {0, 0, v1alpha1.VerdictPass},
	} {
		t.Run(name, func(t *testing.T) {
			d := Data{Metric: catalog.Metric{Signal: catalog.Errors, Metric: v1alpha1.Metric{Name: "errors", Kind: v1alpha1.KindRatio,
				Direction: v1alpha1.DirectionHigher, SmallestChange: &v1alpha1.Change{Relative: "50%", Absolute: "0.005"}}}}
			d.Old.All = []samples.Series{requests("web-0", "200", "a", -595, 300, 10), requests("web-1", "200", "b", -595, 300, 10)}
			target := v1alpha1.Target{NewSince: map[string]metav1.Time{}}
			expected := 0.0
			for i, pod := range []string{"web-2", "web-3", "web-4"} {
				at := 60 * float64(i)
				target.NewSince[pod] = newSinceOf([]string{pod}, at)[pod]
				bad := []samples.Series{requests(pod, "500", "old", -60, at-3, 10*c.oldShare), requests(pod, "500", "new", at+12, 300, 10*c.newShare)}
				d.New.Bad = append(d.New.Bad, bad...)
				d.New.All = append(d.New.All, bad...)
				good := requests(pod, "200", "new", at+12, 300, 10*(1-c.newShare))
				d.New.All = append(d.New.All, requests(pod, "200", "old", -595, at-3, 10*(1-c.oldShare)), good)
				expected += good.Points[len(good.Points)-1].V / (1 - c.newShare)
			}
			r := looksAt(d, target, 5*time.Minute, "1%")
			if r.Verdict != c.want {
				t.Errorf("%s (%s), want %s", r.Verdict, r.Message, c.want)
			}
			if got := float64(r.Metrics[0].New.Samples); r.Final && r.Verdict == v1alpha1.VerdictPass && math.Abs(got-expected) > 1 {
				t.Errorf("%g requests of new pods count, want %g", got, expected)
			}
		})
	}
}

// A counter that goes on after an update in place of another container does not count from zero.
func TestTheCountersOfAPodThatWasUpdatedInPlaceCountSinceThen(t *testing.T) {
	d := Data{Metric: catalog.Metric{Signal: catalog.Custom, Metric: v1alpha1.Metric{Name: "events", Kind: v1alpha1.KindCounter, Direction: v1alpha1.DirectionHigher}}}
	d.New.All = []samples.Series{seriesOf(map[string]string{"pod": "web-0"}, -595, 300, func(t float64) float64 { return 1e6 + t })}
	d.Old.All = []samples.Series{seriesOf(map[string]string{"pod": "web-1"}, -595, 300, func(t float64) float64 { return 1e6 + t })}
	r := looksAt(d, v1alpha1.Target{NewSince: newSinceOf([]string{"web-0"}, 60)}, 5*time.Minute, "1%")
	if e := r.Metrics[0]; r.Verdict != v1alpha1.VerdictPass || e.New.Bad != "240" || e.New.Samples != 16 {
		t.Errorf("%s (%s): %+v, want 240 events in 16 cells", r.Verdict, r.Message, e.New)
	}
}

func TestANewPodWithoutSamplesHasNotThoseOfAnEarlierOne(t *testing.T) {
	d := Data{Metric: catalog.Metric{Signal: catalog.Errors, Metric: v1alpha1.Metric{Name: "errors", Kind: v1alpha1.KindRatio, Direction: v1alpha1.DirectionHigher}}}
	of := func(pod string) samples.Series {
		return seriesOf(map[string]string{"pod": pod}, -595, 300, func(t float64) float64 { return 10 * (t + 595) })
	}
	d.New.All, d.Old.All = []samples.Series{of("web-1")}, []samples.Series{of("web-0")}
	d.New.All[0].Points = d.New.All[0].Points[:slices.IndexFunc(d.New.All[0].Points, func(p samples.Point) bool { return p.T > start+60 })]
	r := looksAt(d, v1alpha1.Target{NewSince: newSinceOf([]string{"web-1"}, 70)}, 5*time.Minute, "1%")
	if n := r.Metrics[0].New.Samples; n != 0 || r.Verdict != v1alpha1.VerdictNone {
		t.Errorf("%s with %d requests, want no verdict without requests", r.Verdict, n)
	}
}

// The only pod needed two minutes until it was Ready, so it is older than the start of the release.
func TestTheTimeBeforeTheChangeHasNoSamplesOfTheNewPod(t *testing.T) {
	const created = -120.0
	d := Data{ReferenceBefore: true, Metric: catalog.Metric{Signal: catalog.Errors, Metric: v1alpha1.Metric{Name: "errors", Kind: v1alpha1.KindRatio, Direction: v1alpha1.DirectionHigher}}}
	of := func(code, instance string, from, to, rate float64) samples.Series {
		return seriesOf(map[string]string{"pod": "web-0", "code": code, "instance": instance}, from, to, func(t float64) float64 { return rate * (t - from) })
	}
	d.New.Bad = []samples.Series{of("500", "new", created+15, 300, 3)}
	d.New.All = append([]samples.Series{of("200", "old", -595, created-3, 10), of("200", "new", created+15, 300, 7)}, d.New.Bad...)
	d.Old = d.New
	r := looksAt(d, v1alpha1.Target{NewSince: newSinceOf([]string{"web-0"}, created)}, 5*time.Minute, "1%")
	if e := r.Metrics[0]; r.Verdict != v1alpha1.VerdictFail || e.Old.Bad != "0" {
		t.Errorf("%s (%s), %s failed requests before, want a fail and none before", r.Verdict, r.Message, e.Old.Bad)
	}
}
