package evaluate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
)

func TestAMessageAboutTooLittleDataNamesWhatIsMissing(t *testing.T) {
	const look = 2 * time.Minute
	w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 1, old: 1, load: 2, share: 0.02, factor: 1}
	for want, d := range map[string]Data{
		" events and the old pods ":                 w.ratio(look),
		" requests and the old pods ":               w.latency(look),
		" intervals with samples and the old pods ": w.gauge(look),
		"the state of the new pods has no samples":  {Metric: catalog.Metric{Signal: catalog.Health, Metric: v1alpha1.Metric{Name: "health"}}},
	} {
		d.MinimumData = ptr.To[int64](1e6)
		if e := looks(d, look, "1%").Metrics[0]; e.Reason != v1alpha1.ReasonInsufficientData || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %s, want %q", e.Reason, e.Message, want)
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
