package judge

import (
	"testing"
	"time"

	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

func TestALookDuringProbationIsRepeatedIfPrometheusCouldNotBeRead(t *testing.T) {
	const unread, noChange, inconclusive = judgev1alpha1.ReasonMetricsUnavailable, judgev1alpha1.ReasonNoChange, judgev1alpha1.ReasonInconclusive
	end := time.Unix(1800000000, 0)
	for name, c := range map[string]struct {
		verdict judgev1alpha1.Verdict
		reason  string
		// metrics are the reasons of the metrics.
		metrics []string
		// left is the time until the end of the probation.
		left time.Duration
		want bool
	}{
		"all metrics were read":               {judgev1alpha1.VerdictPass, noChange, []string{noChange, noChange}, time.Hour, false},
		"an inconclusive metric":              {judgev1alpha1.VerdictNone, inconclusive, []string{inconclusive, noChange}, time.Hour, false},
		"there are no series":                 {judgev1alpha1.VerdictNone, judgev1alpha1.ReasonNoSeries, nil, time.Hour, false},
		"the MetricCheck was deleted":         {judgev1alpha1.VerdictNone, ReasonNoMetricCheck, nil, time.Hour, false},
		"series could not be discovered":      {judgev1alpha1.VerdictNone, unread, nil, time.Second, true},
		"the same, at the end":                {judgev1alpha1.VerdictNone, unread, nil, 0, false},
		"no metric was read":                  {judgev1alpha1.VerdictNone, unread, []string{unread, unread}, time.Second, true},
		"no metric was read, after the end":   {judgev1alpha1.VerdictNone, unread, []string{unread, unread}, -time.Hour, false},
		"one metric was not read":             {judgev1alpha1.VerdictNone, unread, []string{unread, noChange}, time.Hour, false},
		"a fail, and one metric was not read": {judgev1alpha1.VerdictFail, judgev1alpha1.ReasonMetricWorse, []string{judgev1alpha1.ReasonMetricWorse, unread}, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := judgev1alpha1.Record{Verdict: c.verdict, Reason: c.reason}
			for _, reason := range c.metrics {
				r.Metrics = append(r.Metrics, judgev1alpha1.Evidence{Reason: reason})
			}
			if got := isRepeated(r, end, end.Add(-c.left)); got != c.want {
				t.Errorf("repeated %t, want %t", got, c.want)
			}
		})
	}
}
