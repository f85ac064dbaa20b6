package evaluate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

func TestAMessageAboutTooLittleDataNamesWhatIsMissing(t *testing.T) {
	const look = 2 * time.Minute
	w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 1, old: 1, load: 2, share: 0.02, factor: 1}
	for want, d := range map[string]Data{
		" events of new pods and ":                 w.ratio(look),
		" requests of new pods and ":               w.latency(look),
		" cells with samples of new pods and ":     w.gauge(look),
		"the state of the new pods has no samples": {Metric: catalog.Metric{Signal: catalog.Health, Metric: v1alpha1.Metric{Name: "health"}}},
	} {
		d.MinimumData = new(int64(1e6))
		if e := looks(d, look, "1%").Metrics[0]; e.Reason != v1alpha1.ReasonInsufficientData || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %s, want %q", e.Reason, e.Message, want)
		}
	}
}

// Without old pods, the pods are compared with themselves before the change.
func TestAMessageAboutTheSamePodsNamesNoOldPods(t *testing.T) {
	const look = 5 * time.Minute
	w := world{rand: rand.New(rand.NewPCG(1, 18)), old: 2, load: 5, share: 0.02, noise: 0.01, factor: 1}
	same := func(d Data, minimum int64, until float64) Data {
		d.New, d.Old, d.MinimumData = Pair{samples.Until(d.Old.All, until), samples.Until(d.Old.Bad, until)}, Pair{}, &minimum
		return d
	}
	const end = start + 1000
	for name, tc := range map[string]struct {
		data Data
		want string
	}{
		"a share":              {same(w.ratio(look), 1, end), " % now against "},
		"a latency":            {same(w.latency(look), 1, end), " ms now against "},
		"a gauge":              {same(w.gauge(look), 1, end), " now against "},
		"too few events":       {same(w.ratio(look), 1e6, end), " events now and "},
		"too few requests":     {same(w.latency(look), 1e6, end), " requests now and "},
		"too few samples":      {same(w.gauge(look), 1e6, end), " cells with samples now and "},
		"no events any more":   {same(w.ratio(look), 1, start), " events before and none now"},
		"no requests any more": {same(w.latency(look), 1, start), " events before and none now"},
		"no requests before":   {withoutRequestsBefore(same(w.latency(look), 1, end)), " requests now and 0 before; "},
	} {
		e := looks(tc.data, look, "1%").Metrics[0]
		if !strings.Contains(e.Message, tc.want) || strings.Contains(e.Message, "are 0 requests now") || strings.Contains(e.Message, "old pods") {
			t.Errorf("%s: %s: %q, want %q", name, e.Reason, e.Message, tc.want)
		}
	}
}

// withoutRequestsBefore removes the requests before the release from counters of the new pods.
func withoutRequestsBefore(d Data) Data {
	for _, s := range d.New.All {
		before := 0.0
		for i, p := range s.Points {
			if p.T <= start {
				before = p.V
			}
			s.Points[i].V = p.V - before
		}
	}
	return d
}

func TestALatencyThatIsNotComparedSaysWhy(t *testing.T) {
	const look = 2 * time.Minute
	w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 1, old: 1, load: 20, factor: 1}
	edited := func(edit func(*samples.Series)) Data {
		d := w.latency(look)
		for _, side := range [][]samples.Series{d.New.All, d.Old.All} {
			for i := range side {
				edit(&side[i])
			}
		}
		return d
	}
	aboveAll := func(s *samples.Series) {
		for i := range s.Points {
			if s.Labels["le"] != "+Inf" {
				s.Points[i].V = 0
			}
		}
	}
	const highest = "nearly all requests of old pods are above the highest bound that the histograms of new pods and of old pods have in common"
	for name, tc := range map[string]struct {
		data Data
		want string
	}{
		"requests above all bounds": {edited(aboveAll), highest},
		"only a low bound in common": {edited(func(s *samples.Series) {
			if le := s.Labels["le"]; strings.HasPrefix(s.Labels["pod"], "new") && le != "0.005" && le != "+Inf" {
				s.Labels["le"] = "1" + le
			}
		}), highest},
		"the same pods, above all bounds": {samePods(edited(aboveAll)), "nearly all requests before are above the highest bound that the histograms now and before have in common"},
		"no buckets":                      {edited(func(s *samples.Series) { delete(s.Labels, "le") }), "no series has label le"},
		"a native histogram only":         {edited(func(s *samples.Series) { delete(s.Labels, "le"); s.Points = nil }), "no series has label le"},
	} {
		if e := looks(tc.data, look, "1%").Metrics[0]; e.Reason != v1alpha1.ReasonInsufficientData || !strings.Contains(e.Message, tc.want) {
			t.Errorf("%s: %s: %q, want %q", name, e.Reason, e.Message, tc.want)
		}
	}
}

func TestALongMessageIsCutBetweenTwoCharacters(t *testing.T) {
	short, long := strings.Repeat("a", 1000), strings.Repeat("a", 999)
	for text, want := range map[string]string{short: short, short + "b": short + "…", long + "é": long + "…"} {
		if got := bounded(text); got != want {
			t.Errorf("the end is %q, want %q", got[990:], want[990:])
		}
	}
}

func TestAPassNamesAWorseMetricThatDoesNotFailTheReleaseAlone(t *testing.T) {
	const look = 5 * time.Minute
	at := metav1.NewTime(time.UnixMilli(int64(start * 1000)))
	for want, times := range map[string]float64{
		"no metric of the new pods is worse": 1,
		"threads of the new pods is worse, but does not fail the release alone (weight WithOthers)": 4,
	} {
		w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 1, old: 2, noise: 0.01, factor: 1}
		d := w.gauge(look)
		d.Name, d.Weight, d.Signal = "threads", v1alpha1.WeightWithOthers, catalog.Custom
		for _, s := range d.New.All {
			for i := range s.Points {
				if s.Points[i].T > start {
					s.Points[i].V *= times
				}
			}
		}
		// A metric of the MetricCheck that passes, so that the release may pass.
		passes := w.gauge(look)
		passes.Name, passes.Signal = "memory", catalog.Custom
		in := Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: at},
			Metrics: []Data{d, passes}, Now: at.Add(look), End: at.Add(look)}
		if r := Evaluate(in, nil); r.Verdict != v1alpha1.VerdictPass || r.Message != want {
			t.Errorf("%s: %q, want %q (%+v)", r.Verdict, r.Message, want, r.Metrics[0])
		}
	}
}
