package judge

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

func TestALookDuringProbationIsRepeatedIfPrometheusCouldNotBeRead(t *testing.T) {
	const unread, noChange, inconclusive = judgev1alpha1.ReasonMetricsUnavailable, judgev1alpha1.ReasonNoChange, judgev1alpha1.ReasonInconclusive
	due := time.Unix(1800000000, 0)
	p := v1alpha1.Probation{NextLookTime: &metav1.Time{Time: due}, EndTime: metav1.NewTime(due.Add(24 * time.Hour))}
	for name, c := range map[string]struct {
		verdict judgev1alpha1.Verdict
		reason  string
		// metrics are the reasons of the metrics.
		metrics []string
		// late is how long after it was due the look is made.
		late time.Duration
		want bool
	}{
		"all metrics were read":                   {judgev1alpha1.VerdictPass, noChange, []string{noChange, noChange}, 0, false},
		"an inconclusive metric":                  {judgev1alpha1.VerdictNone, inconclusive, []string{inconclusive, noChange}, 0, false},
		"there are no series":                     {judgev1alpha1.VerdictNone, judgev1alpha1.ReasonNoSeries, nil, 0, false},
		"the MetricCheck was deleted":             {judgev1alpha1.VerdictNone, ReasonNoMetricCheck, nil, 0, false},
		"series could not be discovered":          {judgev1alpha1.VerdictNone, unread, nil, 0, true},
		"the same, hours later":                   {judgev1alpha1.VerdictNone, unread, nil, 23 * time.Hour, true},
		"the same, at the end":                    {judgev1alpha1.VerdictNone, unread, nil, 24 * time.Hour, false},
		"no metric was read":                      {judgev1alpha1.VerdictNone, unread, []string{unread, unread}, 0, true},
		"no metric was read, hours later":         {judgev1alpha1.VerdictNone, unread, []string{unread, unread}, 23 * time.Hour, true},
		"one metric was not read":                 {judgev1alpha1.VerdictNone, unread, []string{unread, noChange}, 0, true},
		"the same, and another one is unclear":    {judgev1alpha1.VerdictNone, inconclusive, []string{inconclusive, unread}, 0, true},
		"one metric was not read for an hour":     {judgev1alpha1.VerdictNone, unread, []string{unread, noChange}, time.Hour, false},
		"a fail, and one metric was not read":     {judgev1alpha1.VerdictFail, judgev1alpha1.ReasonMetricWorse, []string{judgev1alpha1.ReasonMetricWorse, unread}, 0, false},
		"one metric was not read, a bit too soon": {judgev1alpha1.VerdictNone, unread, []string{unread, noChange}, -time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := judgev1alpha1.Record{Verdict: c.verdict, Reason: c.reason}
			for _, reason := range c.metrics {
				r.Metrics = append(r.Metrics, judgev1alpha1.Evidence{Reason: reason})
			}
			if got := isRepeated(r, p, due.Add(c.late)); got != c.want {
				t.Errorf("repeated %t, want %t", got, c.want)
			}
		})
	}
}
