package evaluate

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// The counts were seen at a release that fails 7 % of its requests, with an analysis of a
// minute: 26 of 326 requests of the new pod failed, and 0 of 236 of the old ones.
func TestAnIncreaseThatIsLikelyButNotProvenIsNoPass(t *testing.T) {
	r := looks(countsPerCell([]float64{80, 82, 82, 82}, []float64{6, 7, 6, 7}, 59), time.Minute, "0.1%")
	if r.Verdict != v1alpha1.VerdictNone || r.Reason != v1alpha1.ReasonInconclusive {
		t.Errorf("verdict %s, reason %s: %s", r.Verdict, r.Reason, r.Message)
	}
	for _, bad := range [][]float64{{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 1}} {
		r := looks(countsPerCell([]float64{80, 82, 82, 82}, bad, 59), time.Minute, "0.1%")
		if r.Verdict != v1alpha1.VerdictPass {
			t.Errorf("bad requests %v: verdict %s, reason %s: %s", bad, r.Verdict, r.Reason, r.Message)
		}
	}
}

// With too little data, the other metric of errors would pass the release.
func TestAnIncreaseThatIsLikelyOfAKindWithFewOldRequestsIsNoPass(t *testing.T) {
	const length = 2 * time.Minute
	requests, none := []float64{80, 82, 82, 82, 82, 82, 82, 82}, make([]float64, 8)
	d := countsPerCell(requests, []float64{1, 2, 2, 1, 2, 2, 2, 2}, 59)
	d.Name = "few-of-the-kind"
	labeled(slices.Concat(d.New.All, d.New.Bad, d.Old.All), "http_route", "/healthz")
	orders := countsPerCell(requests, none, 59*20).Old.All
	labeled(orders, "http_route", "/orders")
	d.Old.All = append(d.Old.All, orders...)
	passes := countsPerCell(requests, none, 59)
	at := metav1.NewTime(time.UnixMilli(int64(start * 1000)))
	in := Input{Check: Defaulted(v1alpha1.MetricCheckSpec{MaxFalsePositiveRate: "0.1%"}), Target: v1alpha1.Target{StartTime: at},
		Metrics: []Data{d, passes}, Now: at.Add(length), End: at.Add(length)}
	r := Evaluate(in, nil)
	if r.Verdict != v1alpha1.VerdictNone || r.Reason != v1alpha1.ReasonInconclusive {
		t.Errorf("verdict %s, reason %s: %s", r.Verdict, r.Reason, r.Message)
	}
}

// countsPerCell returns the counters of a new pod with requests and bad requests in each
// cell, and of an old pod without bad requests.
func countsPerCell(requests, bad []float64, old float64) Data {
	d := Data{Metric: catalog.Metric{Signal: catalog.Errors, Unit: "ratio", Metric: v1alpha1.Metric{Name: "errors", Kind: v1alpha1.KindRatio,
		Direction: v1alpha1.DirectionHigher, SmallestChange: &v1alpha1.Change{Relative: "50%", Absolute: "0.005"}}}}
	series := func(pod string) samples.Series { return samples.Series{Labels: map[string]string{"pod": pod}} }
	newAll, newBad, oldAll := series("new-0"), series("new-0"), series("old-0")
	all, failed := 0.0, 0.0
	newAll.Points, newBad.Points = append(newAll.Points, samples.Point{T: start}), append(newBad.Points, samples.Point{T: start})
	for i := range requests {
		all, failed = all+requests[i], failed+bad[i]
		at := start + minimumCell*float64(i+1)
		newAll.Points, newBad.Points = append(newAll.Points, samples.Point{T: at, V: all}), append(newBad.Points, samples.Point{T: at, V: failed})
	}
	const before = 4 * minimumCell
	for at := start - before; at <= start+minimumCell*float64(len(requests)); at += minimumCell {
		oldAll.Points = append(oldAll.Points, samples.Point{T: at, V: old / minimumCell * (at - start + before)})
	}
	d.New, d.Old = Pair{All: []samples.Series{newAll}, Bad: []samples.Series{newBad}}, Pair{All: []samples.Series{oldAll}}
	return d
}
