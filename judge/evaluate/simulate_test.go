package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const start = 1_760_000_000.0

// world simulates the series of one metric of new and old pods.
type world struct {
	rand     *rand.Rand
	new, old int
	// requests per second of a pod, share of bad ones, and what a fault does to the
	// new pods.
	load, share, factor float64
	// faultAt is when the fault of a ratio begins, in seconds from the change. If it is 0, it begins
	// with the pods.
	faultAt float64
	// dispersion of bad events per cell, 1 for Poisson.
	dispersion float64
	// heterogeneity is the relative standard deviation between pods.
	heterogeneity float64
	// autocorrelation and noise of a gauge, relative to its mean.
	autocorrelation, noise float64
	before                 bool
	// stops is the mean number of stops of the machine in 10 minutes. Most requests of all pods
	// fail during a stop, which lasts 10 to 25 seconds.
	stops float64
	// ramp multiplies the load of all pods from the change on.
	ramp float64
	// rollout is how long the new pods take to start one after another, in seconds from the change. If
	// it is 0, all start before the change.
	rollout float64
}

func (w world) poisson(mean float64) float64 {
	if mean > 50 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*w.rand.NormFloat64()))
	}
	n, p, limit := 0.0, 1.0, math.Exp(-mean)
	for {
		p *= w.rand.Float64()
		if p <= limit {
			return n
		}
		n++
	}
}

// gamma returns a gamma variate with the shape and mean 1.
func (w world) gamma(shape float64) float64 {
	if shape < 1 {
		return w.gamma(shape+1) * (shape + 1) / shape * math.Pow(w.rand.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := w.rand.NormFloat64()
		v := (1 + c*x) * (1 + c*x) * (1 + c*x)
		if v > 0 && math.Log(w.rand.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v / shape
		}
	}
}

// count is negative binomial: its variance is dispersion times its mean.
func (w world) count(mean float64) float64 {
	if w.dispersion <= 1 || mean <= 0 {
		return w.poisson(mean)
	}
	return w.poisson(mean * w.gamma(mean/(w.dispersion-1)))
}

func (w world) pods(look time.Duration, each func(name string, isNew bool, from, to float64)) {
	end := start + look.Seconds()
	for i := range w.new {
		from := start - 30
		if w.rollout > 0 {
			from = start + w.rollout*float64(i)/float64(w.new)
		}
		each(fmt.Sprintf("new-%d", i), true, from, end)
	}
	oldEnd := end
	if w.before {
		oldEnd = start
	}
	for i := range w.old {
		each(fmt.Sprintf("old-%d", i), false, start-ReferenceDuration.Seconds(), oldEnd)
	}
}

// stopped returns a function that reports whether the machine stands still at a time.
func (w world) stopped(look time.Duration) func(t float64) bool {
	var stops [][2]float64
	if w.stops > 0 {
		for t := start - ReferenceDuration.Seconds() + w.rand.ExpFloat64()*600/w.stops; t < start+look.Seconds(); t += w.rand.ExpFloat64() * 600 / w.stops {
			stops = append(stops, [2]float64{t, t + 10 + 15*w.rand.Float64()})
		}
	}
	return func(t float64) bool {
		for _, s := range stops {
			if t > s[0] && t-15 < s[1] {
				return true
			}
		}
		return false
	}
}

// ratio returns counters of requests with code 200 and 500.
func (w world) ratio(look time.Duration) Data {
	d := Data{Metric: catalog.Metric{Signal: catalog.Errors, Unit: "ratio", Metric: v1alpha1.Metric{Name: "errors", Kind: v1alpha1.KindRatio,
		Direction: v1alpha1.DirectionHigher, SmallestChange: &v1alpha1.Change{Relative: "50%", Absolute: "0.005"}}}}
	stopped := w.stopped(look)
	w.pods(look, func(name string, isNew bool, from, to float64) {
		good := samples.Series{Labels: map[string]string{"pod": name, "code": "200"}}
		bad := samples.Series{Labels: map[string]string{"pod": name, "code": "500"}}
		share := w.share * math.Exp(w.heterogeneity*w.rand.NormFloat64())
		ok, failed := 0.0, 0.0
		for t := from + 15*w.rand.Float64(); t <= to; t += 15 {
			n := w.poisson(w.load * 15)
			now := share
			if isNew && (w.faultAt == 0 || t >= start+w.faultAt) {
				now *= w.factor
			}
			b := math.Min(n, w.count(n*now))
			if stopped(t) {
				b = math.Round(n * (0.4 + 0.6*w.rand.Float64()))
			}
			ok, failed = ok+n-b, failed+b
			good.Points = append(good.Points, samples.Point{T: t, V: ok})
			if failed > 0 {
				bad.Points = append(bad.Points, samples.Point{T: t, V: failed})
			}
		}
		side := &d.Old
		if isNew {
			side = &d.New
		}
		side.All, side.Bad = append(side.All, good, bad), append(side.Bad, bad)
	})
	return d
}

// latency returns a histogram of lognormal times around 40 ms.
func (w world) latency(look time.Duration) Data {
	d := Data{Metric: catalog.Metric{Signal: catalog.Latency, Unit: "seconds", WarmUp: true, Metric: v1alpha1.Metric{Name: "latency", Kind: v1alpha1.KindLatency,
		Direction: v1alpha1.DirectionHigher, SmallestChange: &v1alpha1.Change{Relative: "20%", Absolute: "0.002"}}}}
	bounds := []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1, math.Inf(1)}
	w.pods(look, func(name string, isNew bool, from, to float64) {
		middle := 0.04 * math.Exp(w.heterogeneity*w.rand.NormFloat64())
		if isNew {
			middle *= w.factor
		}
		series := make([]samples.Series, len(bounds))
		for i, b := range bounds {
			series[i].Labels = map[string]string{"pod": name, "le": fmt.Sprint(b)}
		}
		counts := make([]float64, len(bounds))
		drift := 0.0
		for t := from + 15*w.rand.Float64(); t <= to; t += 15 {
			drift = w.autocorrelation*drift + w.noise*w.rand.NormFloat64()
			for range int(w.poisson(w.load * 15)) {
				v := middle * math.Exp(drift+0.6*w.rand.NormFloat64())
				for i, b := range bounds {
					if v <= b {
						counts[i]++
					}
				}
			}
			for i := range series {
				series[i].Points = append(series[i].Points, samples.Point{T: t, V: counts[i]})
			}
		}
		if isNew {
			d.New.All = append(d.New.All, series...)
		} else {
			d.Old.All = append(d.Old.All, series...)
		}
	})
	return d
}

// gauge returns an autocorrelated value around 100.
func (w world) gauge(look time.Duration) Data {
	d := Data{Metric: catalog.Metric{Signal: catalog.Resources, Unit: "bytes", WarmUp: true, Metric: v1alpha1.Metric{Name: "memory", Kind: v1alpha1.KindGauge,
		Direction: v1alpha1.DirectionHigher, Query: "memory{{{pods}}}", SmallestChange: &v1alpha1.Change{Relative: "10%"}}}}
	w.pods(look, func(name string, isNew bool, from, to float64) {
		s := samples.Series{Labels: map[string]string{"pod": name}}
		mean := 100 * math.Exp(w.heterogeneity*w.rand.NormFloat64())
		if isNew {
			mean *= w.factor
		}
		drift := w.noise / math.Sqrt(1-w.autocorrelation*w.autocorrelation) * w.rand.NormFloat64()
		for t := from + 15*w.rand.Float64(); t <= to; t += 15 {
			drift = w.autocorrelation*drift + w.noise*w.rand.NormFloat64()
			s.Points = append(s.Points, samples.Point{T: t, V: mean * (1 + drift)})
		}
		if isNew {
			d.New.All = append(d.New.All, s)
		} else {
			d.Old.All = append(d.Old.All, s)
		}
	})
	return d
}

// cpu returns the CPU time of pods, half a millisecond a request, and their requests.
func (w world) cpu(look time.Duration) Data {
	d := Data{Metric: catalog.Metric{Signal: catalog.Resources, Unit: "cores", WarmUp: true, PerRequest: true, Metric: v1alpha1.Metric{Name: "cpu", Kind: v1alpha1.KindGauge,
		Direction: v1alpha1.DirectionHigher, Query: "cpu_seconds_total{{{pods}}}", SmallestChange: &v1alpha1.Change{Relative: "20%", Absolute: "0.0005"}}}}
	w.pods(look, func(name string, isNew bool, from, to float64) {
		used, counted := samples.Series{Labels: map[string]string{"pod": name}}, samples.Series{Labels: map[string]string{"pod": name}}
		each := 0.0005 * math.Exp(w.heterogeneity*w.rand.NormFloat64())
		if isNew {
			each *= w.factor
		}
		cpu, requests, drift := 0.0, 0.0, 0.0
		for t := from + 10*w.rand.Float64(); t <= to; t += 10 {
			load := w.load
			if t > start && w.ramp > 0 {
				load *= w.ramp
			}
			n := w.poisson(load * 10)
			drift = w.autocorrelation*drift + w.noise*w.rand.NormFloat64()
			requests += n
			cpu += 10*0.0003 + n*each*(1+drift)
			counted.Points = append(counted.Points, samples.Point{T: t, V: requests})
			used.Points = append(used.Points, samples.Point{T: t, V: math.Floor(cpu*100) / 100})
		}
		if isNew {
			d.New.All, d.Requests.New = append(d.New.All, used), append(d.Requests.New, counted)
		} else {
			d.Old.All, d.Requests.Old = append(d.Old.All, used), append(d.Requests.Old, counted)
		}
	})
	return d
}

// counter returns events per pod, load of them a second.
func (w world) counter(look time.Duration) Data {
	d := Data{Metric: catalog.Metric{Signal: catalog.Custom, Metric: v1alpha1.Metric{Name: "events", Kind: v1alpha1.KindCounter,
		Direction: v1alpha1.DirectionHigher, SmallestChange: &v1alpha1.Change{Relative: "50%"}}}}
	w.pods(look, func(name string, isNew bool, from, to float64) {
		s := samples.Series{Labels: map[string]string{"pod": name}}
		rate, total := w.load*math.Exp(w.heterogeneity*w.rand.NormFloat64()), 0.0
		if isNew {
			rate *= w.factor
		}
		for t := from + 15*w.rand.Float64(); t <= to; t += 15 {
			total += w.count(rate * 15)
			s.Points = append(s.Points, samples.Point{T: t, V: total})
		}
		if isNew {
			d.New.All = append(d.New.All, s)
		} else {
			d.Old.All = append(d.Old.All, s)
		}
	})
	return d
}

// every returns the data with every nth sample of each pod: that of a longer scrape interval. Pods are scraped at
// different times.
func (d Data) every(n int) Data {
	for _, side := range []*Pair{&d.New, &d.Old} {
		for _, series := range [][]samples.Series{side.All, side.Bad} {
			for i := range series {
				var points []samples.Point
				pod := series[i].Labels["pod"]
				for _, p := range series[i].Points {
					if (int(p.T/15)+int(pod[len(pod)-1]))%n == 0 {
						points = append(points, p)
					}
				}
				series[i].Points = points
			}
		}
	}
	return d
}

// looks evaluates a release look by look, and returns the verdict and the number
// of looks.
func looks(d Data, look time.Duration, rate string) v1alpha1.Record {
	return looksAt(d, v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`}, look, rate)
}

// looksAt evaluates a release of the pods of a target.
func looksAt(d Data, target v1alpha1.Target, look time.Duration, rate string) v1alpha1.Record {
	check := Defaulted(v1alpha1.MetricCheckSpec{AnalysisDuration: metav1.Duration{Duration: look}, MaxFalsePositiveRate: rate})
	at := time.UnixMilli(int64(start * 1000))
	target.StartTime = metav1.NewTime(at)
	in := Input{Check: check, Target: target, Metrics: []Data{d}, End: at.Add(look)}
	var record *v1alpha1.Record
	for now := at.Add(15 * time.Second); !now.After(in.End); now = now.Add(15 * time.Second) {
		in.Now = now
		r := Evaluate(in, record)
		record = &r
		if r.Final {
			break
		}
	}
	return *record
}
