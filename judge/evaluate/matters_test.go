package evaluate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

func TestTheSmallestChangeOfALevel(t *testing.T) {
	const higher, lower, either = v1alpha1.DirectionHigher, v1alpha1.DirectionLower, v1alpha1.DirectionEither
	for _, c := range []struct {
		old, value, relative, absolute float64
		directions                     []v1alpha1.Direction // in which the change matters
	}{
		{100, 130, 0.2, 10, []v1alpha1.Direction{higher, either}},
		{100, 70, 0.2, 10, []v1alpha1.Direction{lower, either}},
		{100, 110, 0.2, 10, nil},
		{1, 1.3, 0.2, 10, nil},
		{1, 0, 0.2, 5, nil},
		{10, 0, 0.2, 5, []v1alpha1.Direction{lower, either}},
		{1e6, -3600, 0.2, 10, []v1alpha1.Direction{lower, either}},
		{1, -3, 0.2, 5, nil},
		{0, 6, 0.2, 5, []v1alpha1.Direction{higher, either}},
		{0, -6, 0.2, 5, []v1alpha1.Direction{lower, either}},
		{0, 3, 0.2, 5, nil},
		{0, 0, 0.2, 0, nil},
		{-10, -4, 0.2, 5, []v1alpha1.Direction{higher, either}},
	} {
		want := map[v1alpha1.Direction]bool{}
		for _, d := range c.directions {
			want[d] = true
		}
		for _, d := range []v1alpha1.Direction{higher, lower, either} {
			if got := levelMatters(c.value, c.old, c.relative, c.absolute, d); got != want[d] {
				t.Errorf("%g to %g, %s, at least %g and %g: %t, want %t", c.old, c.value, d, c.relative, c.absolute, got, want[d])
			}
		}
	}
}

func TestEventsThatVanish(t *testing.T) {
	for name, c := range map[string]struct {
		share    float64
		absolute string
		want     v1alpha1.Verdict
	}{
		"less than the smallest change": {0.005, "0.01", v1alpha1.VerdictPass},
		"more than the smallest change": {0.05, "0.01", v1alpha1.VerdictFail},
	} {
		for _, direction := range []v1alpha1.Direction{v1alpha1.DirectionLower, v1alpha1.DirectionEither} {
			w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 50, share: c.share}
			d := w.ratio(5 * time.Minute)
			d.Direction, d.SmallestChange = direction, &v1alpha1.Change{Relative: "25%", Absolute: c.absolute}
			if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
				t.Errorf("%s, %s: %s (%s), want %s", name, direction, r.Verdict, r.Message, c.want)
			}
		}
	}
}

func TestALatencyThatChangesInAnyDirection(t *testing.T) {
	for _, c := range []struct {
		factor    float64
		direction v1alpha1.Direction
		want      v1alpha1.Verdict
	}{
		{0.5, v1alpha1.DirectionHigher, v1alpha1.VerdictPass},
		{0.5, v1alpha1.DirectionLower, v1alpha1.VerdictFail},
		{0.5, v1alpha1.DirectionEither, v1alpha1.VerdictFail},
		{2, v1alpha1.DirectionHigher, v1alpha1.VerdictFail},
		{2, v1alpha1.DirectionLower, v1alpha1.VerdictPass},
		{2, v1alpha1.DirectionEither, v1alpha1.VerdictFail},
		{1, v1alpha1.DirectionEither, v1alpha1.VerdictPass},
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 3, load: 20, factor: c.factor}
		d := w.latency(5 * time.Minute)
		d.Direction = c.direction
		if r := looks(d, 5*time.Minute, "1%"); r.Verdict != c.want {
			t.Errorf("times %g, %s: %s (%s), want %s", c.factor, c.direction, r.Verdict, r.Message, c.want)
		}
	}
}

// duringADisturbance returns the requests of two new and two old pods, with as many in each cell, and of these the bad ones. In
// one cell half of the requests of both sides fail.
func duringADisturbance(requests, newBad, oldBad float64) Data {
	d := world{}.ratio(0)
	add := func(side *Pair, name string, from, bad float64) {
		const disturbed = 105
		all := func(at float64) float64 { return requests * (at - from) / 15 }
		addRequests(side, map[string]string{"pod": name}, from, 300, all, func(at float64) float64 {
			n := bad * (at - from) / 15
			if at >= disturbed {
				n += requests/2 - bad
			}
			return n
		})
	}
	for _, name := range []string{"1", "2"} {
		add(&d.New, "new-"+name, -30, newBad)
		add(&d.Old, "old-"+name, -600, oldBad)
	}
	return d
}

// A new kind of requests has no old ones, so it is not compared.
func TestANewKindOfRequestsDoesNotMakeAChangeSmaller(t *testing.T) {
	d := world{}.ratio(0)
	add := func(side *Pair, name, route string, from, to, requests, bad float64) {
		perCell := func(n float64) func(float64) float64 {
			return func(at float64) float64 { return n * (at - from) / 15 }
		}
		addRequests(side, map[string]string{"pod": name, "route": route}, from, to, perCell(requests), perCell(bad))
	}
	for _, name := range []string{"1", "2"} {
		add(&d.Old, "old-"+name, "/a", -600, 0, 5000, 5)
		add(&d.New, "new-"+name, "/a", -30, 300, 5000, 45)
		add(&d.New, "new-"+name, "/b", -30, 300, 4800, 0)
	}
	if r := looks(d, 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictFail {
		t.Errorf("of requests to /a, 0.9 %% instead of 0.1 %% fail: %s (%s), want a fail", r.Verdict, r.Message)
	}
}

// A joint disturbance has far more errors than all other cells, so it must not count for the size of the change.
func TestAJointDisturbanceDoesNotMakeASmallChangeMatter(t *testing.T) {
	if r := looks(duringADisturbance(10000, 20, 10), 5*time.Minute, "1%"); r.Verdict != v1alpha1.VerdictPass {
		t.Errorf("0.2 %% instead of 0.1 %%: %s (%s), want a pass", r.Verdict, r.Message)
	}
}

func TestTheRecordHasTheNumbersThatWereCompared(t *testing.T) {
	type numbers struct {
		NewValue, OldValue, OldBad string
		NewSamples, OldSamples     int64
		OldFrom                    time.Time
		Message                    string
	}
	const length = 5 * time.Minute
	at := time.UnixMilli(int64(start * 1000)).UTC()
	withNewKind := duringADisturbance(4, 0.2, 0.04)
	withNewKind.New.All = append(withNewKind.New.All, kinds(1, good(withNewKind.New.All), "/new/", 1)...)
	ended := duringADisturbance(10000, 70, 10)
	ended.Old = Pair{samples.Until(ended.Old.All, start), samples.Until(ended.Old.Bad, start)}
	for name, c := range map[string]struct {
		data Data
		want numbers
	}{
		"without the cell of a disturbance": {duringADisturbance(10000, 70, 10), numbers{"0.007", "0.001", "380", 380000, 380000, at,
			"0.7 % of new pods against 0.1 % of old pods; without disturbances with 10000 bad events of new pods and 10000 of old pods"}},
		"without the cell of a disturbance, only the time before is left": {ended, numbers{"0.007", "0.001", "800", 380000, 800000, at.Add(-ReferenceDuration),
			"0.7 % of new pods against 0.1 % of old pods; without disturbances with 10000 bad events of new pods and 0 of old pods"}},
		"few requests, so also those from before":    {duringADisturbance(4, 0.2, 0.04), numbers{"0.0725", "0.0181667", "8.72", 160, 480, at.Add(-ReferenceDuration), "7.2 % of new pods against 1.8 % of old pods; at the same time 3.4 % of old pods"}},
		"requests of a kind that only new pods have": {withNewKind, numbers{"0.0725", "0.0181667", "8.72", 160, 480, at.Add(-ReferenceDuration), "7.2 % of new pods against 1.8 % of old pods; at the same time 3.4 % of old pods"}},
	} {
		in := Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{StartTime: metav1.NewTime(at)},
			Metrics: []Data{c.data}, Now: at.Add(length), End: at.Add(length)}
		e := Evaluate(in, nil).Metrics[0]
		got := numbers{e.New.Value, e.Old.Value, e.Old.Bad, e.New.Samples, e.Old.Samples, e.Old.From.UTC(), e.Message}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheMessageOfALatencyHasTheSlowRequestsThatWereLeftOut(t *testing.T) {
	d := duringADisturbance(10000, 70, 10)
	d.Kind, d.Unit = v1alpha1.KindLatency, "seconds"
	for _, side := range []*Pair{&d.Old, &d.New} {
		labeled(good(side.All), "le", "0.1")
		for _, fast := range good(side.All) {
			all := samples.Series{Labels: map[string]string{"pod": fast.Labels["pod"], "le": "+Inf"}}
			for i, p := range fast.Points {
				all.Points = append(all.Points, samples.Point{T: p.T, V: 10000 * float64(i)})
			}
			side.All = append(side.All, all)
		}
		side.Bad = nil
	}
	const first, last = "quantile 0.5: ", "; without disturbances with 10000 slow requests of new pods and 10000 of old pods"
	r := looks(d, 5*time.Minute, "1%")
	if m := r.Metrics[0].Message; !strings.HasPrefix(m, first) || !strings.HasSuffix(m, last) {
		t.Errorf("%q, want %q at the start and %q at the end", m, first, last)
	}
}

// The width of a cell follows from the samples, and need not be a whole number of seconds.
func TestTheSamplesOfACounterAreItsCells(t *testing.T) {
	d := world{}.counter(0)
	pod := func(name string, from, to float64) samples.Series {
		s := seriesOf(map[string]string{"pod": name}, from, to, func(at float64) float64 { return at - from })
		for i := range s.Points {
			s.Points[i].T = start + (s.Points[i].T-start)*1.0007
		}
		return s
	}
	d.New.All = []samples.Series{pod("new-1", -30, 300), pod("new-2", -30, 300)}
	d.Old.All = []samples.Series{pod("old-1", -600, 300), pod("old-2", -600, 300)}
	const cells = 2 * 19
	if m := looks(d, 5*time.Minute, "1%").Metrics[0]; m.New.Samples != cells || m.Old.Samples != cells {
		t.Errorf("%d samples of new pods and %d of old pods, want %d", m.New.Samples, m.Old.Samples, cells)
	}
}
