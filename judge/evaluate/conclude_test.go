package evaluate

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
)

// A record with another reason is final, so the metric that could not be read is never read.
func TestAMetricThatCouldNotBeReadIsTheFirstReason(t *testing.T) {
	const look = 2 * time.Minute
	w := world{rand: rand.New(rand.NewPCG(1, 18)), new: 2, old: 2, load: 5, share: 0.02, factor: 1}
	empty := Data{Metric: catalog.Metric{Signal: catalog.Custom, Metric: v1alpha1.Metric{Name: "orders", Kind: v1alpha1.KindCounter}}}
	unread := w.ratio(look)
	unread.Err = errors.New("timeout")
	at := time.UnixMilli(int64(start * 1000))
	for name, metrics := range map[string][]Data{
		"first": {unread, empty},
		"last":  {empty, unread},
	} {
		r := Evaluate(Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{StartTime: metav1.NewTime(at)},
			Metrics: metrics, Now: at.Add(look), End: at.Add(look)}, nil)
		if r.Reason != v1alpha1.ReasonMetricsUnavailable || !strings.HasPrefix(r.Message, "errors: timeout") {
			t.Errorf("%s: reason %s (%s), want %s", name, r.Reason, r.Message, v1alpha1.ReasonMetricsUnavailable)
		}
	}
}
