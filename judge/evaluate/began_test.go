package evaluate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// A new pod had 60 requests before its first sample, of which 40 failed, and later 15 in each
// interval without an error.
func TestTheFirstValueOfTheCounterOfANewPodCounts(t *testing.T) {
	at := time.UnixMilli(int64(start * 1000))
	pod := func(name, code string, from, first, each float64) samples.Series {
		s := samples.Series{Labels: map[string]string{"pod": name, "code": code}}
		for t, v := from, first; t <= 290; t, v = t+15, v+each {
			s.Points = append(s.Points, samples.Point{T: start + t, V: v})
		}
		return s
	}
	for name, c := range map[string]struct {
		kind v1alpha1.MetricKind
		// from is the first sample of the new pod, oldFrom that of the old pods.
		from, oldFrom   float64
		referenceBefore bool
		// all and bad are the counts of the new pod. The samples of a Counter are its cells.
		all int64
		bad string
	}{
		"a new pod":                    {v1alpha1.KindRatio, 5, -595, false, 60 + 19*15, "40"},
		"a pod that starts later":      {v1alpha1.KindRatio, 95, -595, false, 60 + 13*15, "40"},
		"a pod that existed":           {v1alpha1.KindRatio, -595, -595, false, 20 * 15, "0"},
		"Prometheus restarted":         {v1alpha1.KindRatio, 5, 5, false, 19 * 15, "0"},
		"Prometheus restarted before":  {v1alpha1.KindRatio, 5, -25, false, 19 * 15, "0"},
		"the only pods":                {v1alpha1.KindRatio, 5, -595, true, 19 * 15, "0"},
		"events of a new pod":          {v1alpha1.KindCounter, 5, -595, false, 20, "40"},
		"events of a pod that existed": {v1alpha1.KindCounter, -595, -595, false, 20, "0"},
		"events, Prometheus restarted": {v1alpha1.KindCounter, 5, 5, false, 20, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Data{Metric: catalog.Metric{Signal: catalog.Errors, Metric: v1alpha1.Metric{Kind: c.kind, Direction: v1alpha1.DirectionHigher}}, ReferenceBefore: c.referenceBefore}
			failed := pod("new-1", "500", c.from, 40, 0)
			d.New = Pair{All: []samples.Series{pod("new-1", "200", c.from, 20, 15), failed}, Bad: []samples.Series{failed}}
			d.Old = Pair{All: []samples.Series{pod("old-1", "200", c.oldFrom, 1000, 15), pod("old-2", "200", c.oldFrom+3, 1000, 15)}}
			if c.kind == v1alpha1.KindCounter {
				d.New, d.Old = Pair{All: []samples.Series{failed}}, Pair{All: []samples.Series{pod("old-1", "500", c.oldFrom, 100, 0)}}
			}
			in := Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{StartTime: metav1.NewTime(at)}, Now: at.Add(5 * time.Minute), End: at.Add(5 * time.Minute)}
			o := compareMetric(in, d)
			if int64(o.newSamples) != c.all {
				t.Errorf("the new pod has %g samples, want %d", o.newSamples, c.all)
			}
			series := bad
			if c.kind == v1alpha1.KindCounter {
				series = all
			}
			if events, _, _ := d.read(newFrame(in, d), series); number(events.total()) != c.bad {
				t.Errorf("the new pod has %g bad events, want %s", events.total(), c.bad)
			}
		})
	}
}
