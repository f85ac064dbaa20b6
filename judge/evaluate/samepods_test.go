package evaluate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// samePods returns the series of the old pods until the change, and those of the new pods from then
// on, as the series of the same pods.
func samePods(d Data) Data {
	splice := func(olds, news []samples.Series) []samples.Series {
		var out []samples.Series
		for i, s := range olds {
			total := 0.0
			points := samples.Until([]samples.Series{s}, start)[0].Points
			if len(points) > 0 {
				total = points[len(points)-1].V
			}
			joined := samples.Series{Labels: s.Labels, Points: append([]samples.Point{}, points...)}
			for _, p := range news[i].Points {
				if p.T > start {
					joined.Points = append(joined.Points, samples.Point{T: p.T, V: total + p.V})
				}
			}
			out = append(out, joined)
		}
		return out
	}
	d.New, d.Old = Pair{splice(d.Old.All, d.New.All), splice(d.Old.Bad, d.New.Bad)}, Pair{}
	return d
}

// Requests after the change say nothing about the time before it.
func TestTheSamePodsNeedRequestsBeforeTheChange(t *testing.T) {
	const look = 5 * time.Minute
	w := world{rand: rand.New(rand.NewPCG(1, 20)), new: 2, old: 2, load: 2, share: 0.5, factor: 1}
	idle := func(d Data) Data { // the counters do not increase before the change
		for _, series := range [][]samples.Series{d.Old.All, d.Old.Bad} {
			for _, s := range series {
				for i := range s.Points {
					s.Points[i].V = 0
				}
			}
		}
		return samePods(d)
	}
	for name, d := range map[string]Data{"a share": idle(w.ratio(look)), "a latency": idle(w.latency(look))} {
		if e := looks(d, look, "1%").Metrics[0]; e.Verdict != v1alpha1.VerdictNone || e.Reason != v1alpha1.ReasonInsufficientData {
			t.Errorf("%s: %s (%s: %s)", name, e.Verdict, e.Reason, e.Message)
		}
	}
}
