package judge

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// counted returns the requests of one pod that a mesh or spans count.
func counted(pod string, from, to time.Duration, labels map[string]string) samples.Series {
	s := requests(pod, from, to, 5, nil)
	labels["pod"] = pod
	s.Labels = labels
	return s
}

// A worker of a queue gets no requests. If only one side has none, the reason may be the new version.
func TestAWorkerThatOnlyMakesCallsIsJudgedByItsOwnMetric(t *testing.T) {
	const before, end, dayBefore = -10 * time.Minute, 5 * time.Minute, -24 * time.Hour
	istio := func(reporter, pod string, from time.Duration) samples.Series {
		return counted(pod, from, end, map[string]string{"__name__": "istio_requests_total", "reporter": reporter, "response_code": "200"})
	}
	both := func(one func(pod string, from time.Duration) samples.Series) []samples.Series {
		return []samples.Series{one("old-1", before), one("new-1", -15*time.Second)}
	}
	calls := both(func(pod string, from time.Duration) samples.Series { return istio("source", pod, from) })
	yesterday := counted("old-1", dayBefore, dayBefore+end, map[string]string{"__name__": "istio_requests_total", "reporter": "destination", "response_code": "200"})
	for name, tc := range map[string]struct {
		series []samples.Series
		// old is the matcher of the old pods.
		old  string
		want v1alpha1.Verdict
		// by are the metrics that are compared, besides the own one.
		by []string
	}{
		"calls in Istio": {calls, `pod=~"old-.*"`, v1alpha1.VerdictPass, nil},
		"calls in Linkerd": {both(func(pod string, from time.Duration) samples.Series {
			return counted(pod, from, end, map[string]string{"__name__": "response_total", "direction": "outbound", "classification": "success"})
		}), `pod=~"old-.*"`, v1alpha1.VerdictPass, nil},
		"spans of calls": {both(func(pod string, from time.Duration) samples.Series {
			return counted(pod, from, end, map[string]string{"__name__": "calls_total", "span_kind": "SPAN_KIND_CLIENT", "status_code": "STATUS_CODE_UNSET"})
		}), `pod=~"old-.*"`, v1alpha1.VerdictPass, []string{"spans-client-errors"}},
		"requests of old pods only":                 {append(calls[:2:2], istio("destination", "old-1", before)), `pod=~"old-.*"`, v1alpha1.VerdictNone, []string{"istio-errors"}},
		"requests of new pods only":                 {append(calls[:2:2], istio("destination", "new-1", -15*time.Second)), `pod=~"old-.*"`, v1alpha1.VerdictNone, []string{"istio-errors"}},
		"requests of old pods only, the day before": {append(calls[:2:2], yesterday), `pod=~"old-.*"`, v1alpha1.VerdictNone, []string{"istio-errors"}},
		"requests of the same pods that end": {[]samples.Series{
			istio("source", "new-1", before), counted("new-1", before, -time.Minute, map[string]string{"__name__": "istio_requests_total", "reporter": "destination", "response_code": "200"}),
		}, "", v1alpha1.VerdictNone, []string{"istio-errors"}},
	} {
		t.Run(name, func(t *testing.T) {
			series := append(slices.Clone(tc.series), memory("old-1", before, end), memory("new-1", before, end))
			target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: tc.old, StartTime: metav1.NewTime(at)}
			own := v1alpha1.Metric{Name: "memory", Kind: v1alpha1.KindGauge, Query: "container_memory_working_set_bytes{{{pods}}}"}
			r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{Metrics: []v1alpha1.Metric{own}}, target)
			var by []string
			for _, m := range r.Metrics {
				if m.Name != own.Name {
					by = append(by, m.Name)
				}
			}
			if r.Verdict != tc.want || !slices.Equal(by, tc.by) {
				t.Errorf("verdict %s, reason %s (%s) by %q, want %s by %q", r.Verdict, r.Reason, r.Message, by, tc.want, tc.by)
			}
			if r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target); r.Verdict != v1alpha1.VerdictNone {
				t.Errorf("without its own metric: verdict %s, reason %s (%s), want none", r.Verdict, r.Reason, r.Message)
			}
		})
	}
}
