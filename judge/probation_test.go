package judge

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// succeeded is the time from the start of a release to its success.
const succeeded = 5 * time.Minute

// counts returns a counter of one pod from a time to another, relative to the release, with an
// increase for each 15 seconds.
func counts(name, pod string, labels map[string]string, from, to time.Duration, increase func(time.Duration) float64) samples.Series {
	s := samples.Series{Labels: map[string]string{"__name__": name, "pod": pod}}
	for k, v := range labels {
		s.Labels[k] = v
	}
	total := 0.0
	for d := from; d <= to; d += 15 * time.Second {
		total += increase(d)
		s.Points = append(s.Points, samples.Point{T: float64(at.Add(d).Unix()), V: total})
	}
	return s
}

// traffic returns 5 requests/s of a pod, of which a share fails from a time on.
func traffic(pod string, from, to time.Duration, share float64, since time.Duration) []samples.Series {
	bad := func(d time.Duration) float64 {
		if d < since {
			return 0
		}
		return 75 * share
	}
	const name = "http_server_request_duration_seconds_count"
	return []samples.Series{
		counts(name, pod, map[string]string{"http_response_status_code": "200"}, from, to, func(d time.Duration) float64 { return 75 - bad(d) }),
		counts(name, pod, map[string]string{"http_response_status_code": "500"}, from, to, bad),
	}
}

// restarts returns the restarts of a pod at some times.
func restarts(pod string, from, to time.Duration, times ...time.Duration) samples.Series {
	return counts("kube_pod_container_status_restarts_total", pod, nil, from, to, func(d time.Duration) float64 {
		n := 0.0
		for _, at := range times {
			if d-15*time.Second < at && at <= d {
				n++
			}
		}
		return n
	})
}

// sidecar returns the series as that of another container.
func sidecar(s samples.Series) samples.Series {
	s.Labels["container"] = "sidecar"
	return s
}

// ofInitContainer returns the series of restarts of a container as those of an init container.
func ofInitContainer(s samples.Series, restartPolicy string) []samples.Series {
	s.Labels["__name__"] = "kube_pod_init_container_status_restarts_total"
	info := samples.Series{Labels: maps.Clone(s.Labels), Points: s.Points}
	info.Labels["__name__"], info.Labels["restart_policy"] = "kube_pod_init_container_info", restartPolicy
	return []samples.Series{s, info}
}

// restarted returns the restarts of a pod that restarted before its first sample.
func restarted(pod string, from, to time.Duration, n float64) samples.Series {
	return counts("kube_pod_container_status_restarts_total", pod, nil, from, to, func(d time.Duration) float64 {
		if d == from {
			return n
		}
		return 0
	})
}

// killed returns the reason of the last termination of a pod, which was killed at a time.
func killed(pod string, at, to time.Duration) samples.Series {
	return counts("kube_pod_container_status_last_terminated_reason", pod, map[string]string{"reason": "OOMKilled"}, at, to,
		func(d time.Duration) float64 {
			if d == at {
				return 1
			}
			return 0
		})
}

// lookDuringProbation looks at a release after 10, 30 and 60 minutes, the end of its probation.
func lookDuringProbation(t *testing.T, series []samples.Series, metrics ...v1alpha1.Metric) v1alpha1.Record {
	t.Helper()
	l := ProbationLook{
		Check:   v1alpha1.MetricCheckSpec{Metrics: metrics},
		Target:  v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)},
		Success: at.Add(succeeded), End: at.Add(succeeded + time.Hour),
	}
	for _, after := range []time.Duration{10, 30, 60} {
		r := LookDuringProbation(t.Context(), shop{series}, l, l.Success.Add(after*time.Minute))
		l.Previous = &r
	}
	return *l.Previous
}

func TestProbationFindsLateFaultsOnly(t *testing.T) {
	const before, end = -2 * time.Hour, succeeded + time.Hour
	never := end + time.Hour
	old := append(traffic("old-1", before, 0, 0, 0), traffic("old-2", before, 0, 0, 0)...)
	fresh := func(share float64, since time.Duration) []samples.Series {
		return append(traffic("new-1", 0, end, share, since), traffic("new-2", 0, end, share, since)...)
	}
	with := func(groups ...[]samples.Series) []samples.Series {
		var out []samples.Series
		for _, g := range groups {
			out = append(out, g...)
		}
		return out
	}
	good := with(old, fresh(0, never))
	sparse := traffic("new-1", 0, end, 0, never)
	for i := range sparse {
		for k := range sparse[i].Points {
			sparse[i].Points[k].V /= 3000
		}
	}
	again := []time.Duration{20 * time.Minute, 40 * time.Minute}
	for name, c := range map[string]struct {
		series []samples.Series
		want   v1alpha1.Verdict
		reason string
		looks  int32
	}{
		"as before the release":                               {good, v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"errors from the start":                               {with(old, fresh(0.05, 0)), v1alpha1.VerdictFail, v1alpha1.ReasonMetricWorse, 1},
		"errors since 20 minutes":                             {with(old, fresh(0.05, 20*time.Minute)), v1alpha1.VerdictFail, v1alpha1.ReasonMetricWorse, 2},
		"errors since 40 minutes":                             {with(old, fresh(0.05, 40*time.Minute)), v1alpha1.VerdictFail, v1alpha1.ReasonMetricWorse, 3},
		"as many errors as before the release":                {with(traffic("old-1", before, 0, 0.05, before), fresh(0.05, 0)), v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"no requests any more":                                {with(old, traffic("new-1", 0, 10*time.Minute, 0, never)), v1alpha1.VerdictNone, v1alpha1.ReasonNoSeries, 3},
		"no series at all":                                    {nil, v1alpha1.VerdictNone, v1alpha1.ReasonNoSeries, 3},
		"few requests":                                        {with(old, sparse), v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData, 3},
		"nothing before the release":                          {fresh(0, never), v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"nothing before the release, errors since 20 minutes": {fresh(0.05, 20*time.Minute), v1alpha1.VerdictFail, v1alpha1.ReasonMetricWorse, 2},
		"one restart":                                         {with(good, []samples.Series{restarts("new-1", 0, end, again[0])}), v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"each pod restarts once": {with(good, []samples.Series{restarts("new-1", 0, end, again[0]), restarts("new-2", 0, end, again[0])}),
			v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"the node of a pod with two containers reboots": {with(good, []samples.Series{restarts("new-1", 0, end, again[0]), sidecar(restarts("new-1", 0, end, again[0]))}),
			v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"a pod restarts again and again": {with(good, []samples.Series{restarts("new-1", 0, end, again...)}), v1alpha1.VerdictFail, v1alpha1.ReasonPodsUnhealthy, 3},
		"a sidecar restarts again and again": {with(good, ofInitContainer(sidecar(restarts("new-1", 0, end, again...)), "Always")),
			v1alpha1.VerdictFail, v1alpha1.ReasonPodsUnhealthy, 3},
		"an init container restarts again and again": {with(good, ofInitContainer(sidecar(restarts("new-1", 0, end, again...)), "")),
			v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"a later pod restarts again and again at its start": {with(good, []samples.Series{restarts("new-1", 0, end), restarted("new-3", 20*time.Minute, end, 2)}),
			v1alpha1.VerdictFail, v1alpha1.ReasonPodsUnhealthy, 2},
		"a later pod restarts once at its start": {with(good, []samples.Series{restarts("new-1", 0, end), restarted("new-3", 20*time.Minute, end, 1)}),
			v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"a later pod restarts as the old pods did at their start": {with(good, []samples.Series{restarts("new-1", 0, end), restarted("new-3", 20*time.Minute, end, 2), restarted("old-1", before, 0, 2)}),
			v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"all pods have a first sample after the success": {with(good, []samples.Series{restarted("new-1", 20*time.Minute, end, 7), restarted("new-2", 20*time.Minute, end, 7)}),
			v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"the old pods restarted as often": {with(good, []samples.Series{restarts("new-1", 0, end, again...), restarts("old-1", before, 0, -30*time.Minute, -20*time.Minute)}),
			v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"restarts before the success": {with(good, []samples.Series{restarts("new-1", 0, end, time.Minute, 2*time.Minute)}), v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"one OOM kill":                {with(good, []samples.Series{killed("new-1", again[0], end)}), v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, 3},
		"each pod is OOMKilled": {with(good, []samples.Series{killed("new-1", again[0], end), killed("new-2", again[0], end)}),
			v1alpha1.VerdictFail, v1alpha1.ReasonPodsUnhealthy, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := lookDuringProbation(t, c.series)
			if r.Verdict != c.want || r.Reason != c.reason || r.Looks != c.looks || !r.Final {
				t.Errorf("verdict %s, reason %s after %d looks, final %t (%s), want %s, %s after %d", r.Verdict, r.Reason, r.Looks, r.Final, r.Message, c.want, c.reason, c.looks)
			}
			if r.Verdict == v1alpha1.VerdictFail && (len(r.Metrics) == 0 || r.Metrics[0].New == nil || r.Metrics[0].Old == nil || r.DetectionTime == nil) {
				t.Errorf("a fail without evidence: %+v", r)
			}
		})
	}
}

func TestProbationSaysWhichSeriesAreMissing(t *testing.T) {
	const end = succeeded + time.Hour
	for want, series := range map[string][]samples.Series{
		"no metric that is compared after the success of a release has series of the new pods": nil,
		"no series of failed requests of these pods is known, and health alone is no proof; name a metric of kind Ratio without causedByCallers in spec.metrics": {
			restarts("new-1", 0, end)},
	} {
		if r := lookDuringProbation(t, series); r.Verdict != v1alpha1.VerdictNone || r.Message != want {
			t.Errorf("%s: %s, want %s", r.Verdict, r.Message, want)
		}
	}
}

// Each look is recomputed from its record alone, as it is stored, and from the MetricCheck.
func TestALookDuringProbationIsRecomputedFromItsRecord(t *testing.T) {
	const before, end = -2 * time.Hour, succeeded + time.Hour
	old := append(traffic("old-1", before, 0, 0, 0), traffic("old-2", before, 0, 0, 0)...)
	fresh := func(share float64, more ...samples.Series) []samples.Series {
		return slices.Concat(old, traffic("new-1", 0, end, share, 40*time.Minute), traffic("new-2", 0, end, share, 40*time.Minute), more)
	}
	check := v1alpha1.MetricCheckSpec{MaxFalsePositiveRate: "2%"}
	for name, c := range map[string]struct {
		series []samples.Series
		want   v1alpha1.Verdict
	}{
		"as before the release":             {fresh(0), v1alpha1.VerdictPass},
		"errors since 40 minutes":           {fresh(0.05), v1alpha1.VerdictFail},
		"a pod restarts again and again":    {fresh(0, restarts("new-1", 0, end, 20*time.Minute, 40*time.Minute)), v1alpha1.VerdictFail},
		"a later pod restarts at its start": {fresh(0, restarts("new-1", 0, end), restarted("new-3", 20*time.Minute, end, 2)), v1alpha1.VerdictFail},
		"no series":                         {nil, v1alpha1.VerdictNone},
	} {
		t.Run(name, func(t *testing.T) {
			l := ProbationLook{
				Check: check, Target: v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)},
				Success: at.Add(succeeded), End: at.Add(end),
			}
			for _, after := range []time.Duration{10, 30, 60} {
				r := LookDuringProbation(t.Context(), shop{c.series}, l, l.Success.Add(after*time.Minute))
				l.Previous = &r
				stored, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				var record v1alpha1.Record
				if err := json.Unmarshal(stored, &record); err != nil {
					t.Fatal(err)
				}
				again, err := json.Marshal(Recompute(t.Context(), shop{c.series}, v1alpha1.MetricCheckSpec{}, record))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(stored), string(again)); diff != "" {
					t.Fatalf("after %d minutes:\n%s", after, diff)
				}
			}
			if l.Previous.Verdict != c.want {
				t.Errorf("verdict %s, want %s", l.Previous.Verdict, c.want)
			}
		})
	}
}

// A metric that depends on the load or the time of day is no evidence against a release that
// has no old pods to be compared with.
func TestProbationComparesNoLatencyAndNoMemory(t *testing.T) {
	const before, end = -2 * time.Hour, succeeded + time.Hour
	series := append(traffic("old-1", before, 0, 0, 0), traffic("new-1", 0, end, 0, end)...)
	series = append(series, memory("old-1", before, 0), memory("new-1", 0, end))
	for i := range series[len(series)-1].Points {
		series[len(series)-1].Points[i].V *= 10
	}
	if r := lookDuringProbation(t, series); r.Verdict != v1alpha1.VerdictPass || len(r.Metrics) != 1 {
		t.Errorf("verdict %s (%s), %d metrics", r.Verdict, r.Message, len(r.Metrics))
	}
}

func TestMoreBadEventsThatCallersCauseThanBeforeAreNoFail(t *testing.T) {
	const before, end = -2 * time.Hour, succeeded + time.Hour
	replies := func(pod string, from, to time.Duration, wrong float64) []samples.Series {
		const name = "app_replies_total"
		return []samples.Series{
			counts(name, pod, map[string]string{"code": "200", "http_route": "/orders"}, from, to, func(time.Duration) float64 { return 300 - wrong }),
			counts(name, pod, map[string]string{"code": "404"}, from, to, func(time.Duration) float64 { return wrong }),
		}
	}
	series := slices.Concat(traffic("old-1", before, 0, 0, 0), replies("old-1", before, 0, 9), traffic("new-1", 0, end, 0, end), replies("new-1", 0, end, 36))
	target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
	for causedByCallers, want := range map[bool]v1alpha1.Verdict{false: v1alpha1.VerdictFail, true: v1alpha1.VerdictPass} {
		wrong := v1alpha1.Metric{Name: "wrong-requests", Kind: v1alpha1.KindRatio, Query: `app_replies_total{{{pods}}}`, Bad: `app_replies_total{code=~"4..",{{pods}}}`,
			SmallestChange: &v1alpha1.Change{Relative: "100%", Absolute: "0.05"}, CausedByCallers: causedByCallers}
		if r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{Metrics: []v1alpha1.Metric{wrong}}, target); r.Verdict != want {
			t.Errorf("caused by callers: %t: %s (%s), want %s", causedByCallers, r.Verdict, r.Message, want)
		}
		if r := lookDuringProbation(t, series, wrong); r.Verdict != want {
			t.Errorf("caused by callers: %t, after the success: %s (%s), want %s", causedByCallers, r.Verdict, r.Message, want)
		}
	}
}
