package judge

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/calibrate"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
	"github.com/breakwater-dev/breakwater/test/recording"
)

// shop answers queries from series in memory.
type shop struct{ series []samples.Series }

func (s shop) Range(_ context.Context, expression string, from, to time.Time, _ time.Duration) ([]samples.Series, error) {
	selector, plain := prometheus.ParseSelector(expression)
	if !plain { // discovery
		selector, _ = prometheus.ParseSelector(expression[strings.LastIndex(expression, "{") : strings.LastIndex(expression, "}")+1])
	}
	var out []samples.Series
	for _, one := range s.series {
		if selector.Name != "" && one.Labels["__name__"] != selector.Name || !selector.Matchers.Match(one.Labels) {
			continue
		}
		kept := samples.Series{Labels: one.Labels}
		for _, p := range one.Points {
			if p.T > float64(from.Unix()) && p.T <= float64(to.Unix()) {
				kept.Points = append(kept.Points, p)
			}
		}
		if len(kept.Points) > 0 {
			out = append(out, kept)
		}
	}
	return out, nil
}

var at = time.Unix(1_760_000_000, 0)

// requests returns the counter of one pod from a time to another; value changes
// each sample.
func requests(pod string, from, to time.Duration, perSecond float64, value func(float64) float64) samples.Series {
	s := samples.Series{Labels: map[string]string{"__name__": "http_server_request_duration_seconds_count", "pod": pod, "http_response_status_code": "200"}}
	total := 0.0
	for d := from; d <= to; d += 15 * time.Second {
		total += 15 * perSecond
		v := total
		if value != nil {
			v = value(v)
		}
		s.Points = append(s.Points, samples.Point{T: float64(at.Add(d).Unix()), V: v})
	}
	return s
}

// route returns the series with a route.
func route(name string, s samples.Series) samples.Series {
	s.Labels["http_route"] = name
	return s
}

// memory returns a steady gauge of one pod.
func memory(pod string, from, to time.Duration) samples.Series {
	s := samples.Series{Labels: map[string]string{"__name__": "container_memory_working_set_bytes", "pod": pod}}
	for d := from; d <= to; d += 15 * time.Second {
		s.Points = append(s.Points, samples.Point{T: float64(at.Add(d).Unix()), V: 20 << 20})
	}
	return s
}

func TestNoDataIsNeverAPass(t *testing.T) {
	const before, end = -10 * time.Minute, 5 * time.Minute
	old := []samples.Series{requests("old-1", before, end, 5, nil), requests("old-2", before, end, 5, nil)}
	memories := []samples.Series{memory("old-1", before, end), memory("old-2", before, end), memory("new-1", -15*time.Second, end)}
	still := func(float64) float64 { return 7 }
	fresh := func(value func(float64) float64) samples.Series {
		return requests("new-1", -15*time.Second, end, 5, value)
	}
	nan := func(float64) float64 { return math.NaN() }
	probes := func(pod string, from time.Duration) samples.Series {
		return route("/healthz", requests(pod, from, end, 0.2, nil))
	}
	routed := []samples.Series{route("/orders", requests("old-1", before, end, 5, nil)), probes("old-1", before), probes("new-1", -15*time.Second)}
	for name, c := range map[string]struct {
		series []samples.Series
		want   v1alpha1.Verdict
		reason string
	}{
		"enough data of both":           {append(old[:2:2], fresh(nil)), v1alpha1.VerdictPass, v1alpha1.ReasonNoChange},
		"nothing at all":                {nil, v1alpha1.VerdictNone, v1alpha1.ReasonNoSeries},
		"old pods only":                 {old, v1alpha1.VerdictNone, v1alpha1.ReasonNoTraffic},
		"new pods only, without a past": {[]samples.Series{fresh(nil)}, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"NaN":                           {append(old[:2:2], fresh(nan)), v1alpha1.VerdictNone, v1alpha1.ReasonNoTraffic},
		"NaN of the old pods":           {[]samples.Series{requests("old-1", before, end, 5, nan), fresh(nil)}, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"a counter that stands still":   {append(old[:2:2], fresh(still)), v1alpha1.VerdictNone, v1alpha1.ReasonNoTraffic},
		"series of the new pods end":    {append(old[:2:2], requests("new-1", -15*time.Second, 2*time.Minute, 5, nil)), v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"a handful of requests":         {append(old[:2:2], requests("new-1", -15*time.Second, end, 0.03, nil)), v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"probes of the new pods only":   {routed, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"probes and requests": {
			append(routed[:3:3], route("/orders", fresh(nil))), v1alpha1.VerdictPass, v1alpha1.ReasonNoChange,
		},
		"one pod only, without a past": {[]samples.Series{requests("new-1", 0, end, 50, nil)}, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"one pod only, with its past":  {[]samples.Series{requests("new-1", before, end, 50, nil)}, v1alpha1.VerdictPass, v1alpha1.ReasonNoChange},
		"memory only, no requests":     {memories, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"memory, and no new requests of new or old pods": {
			append(memories[:3:3], requests("old-1", before, end, 5, still), fresh(still)), v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData,
		},
		"memory, and requests of new pods only": {append(memories[:3:3], fresh(nil)), v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"memory, and requests of old pods only": {append(memories[:3:3], old...), v1alpha1.VerdictNone, v1alpha1.ReasonNoTraffic},
		"other pods only":                       {[]samples.Series{requests("other", before, end, 5, nil)}, v1alpha1.VerdictNone, v1alpha1.ReasonNoSeries},
	} {
		t.Run(name, func(t *testing.T) {
			target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
			r := Replay(context.Background(), shop{c.series}, v1alpha1.MetricCheckSpec{}, target)
			if r.Verdict != c.want || r.Reason != c.reason || !r.Final {
				t.Errorf("verdict %s, reason %s, final %t (%s), want %s, %s", r.Verdict, r.Reason, r.Final, r.Message, c.want, c.reason)
			}
		})
	}
}

// A workload without requests can be judged, but only with a metric of its MetricCheck.
func TestWithoutRequestsOnlyAMetricOfTheMetricCheckPasses(t *testing.T) {
	const before, end = -10 * time.Minute, 5 * time.Minute
	series := shop{[]samples.Series{memory("old-1", before, end), memory("old-2", before, end), memory("new-1", -15*time.Second, end)}}
	target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
	own := v1alpha1.Metric{Name: "working-set", Kind: v1alpha1.KindGauge, Query: "container_memory_working_set_bytes{{{pods}}}"}
	r := Replay(t.Context(), series, v1alpha1.MetricCheckSpec{Metrics: []v1alpha1.Metric{own}}, target)
	if r.Verdict != v1alpha1.VerdictPass {
		t.Errorf("with a metric of its own: verdict %s, reason %s (%s), want pass", r.Verdict, r.Reason, r.Message)
	}
	r = Replay(t.Context(), series, v1alpha1.MetricCheckSpec{}, target)
	if r.Verdict != v1alpha1.VerdictNone || !strings.Contains(r.Message, "requests") {
		t.Errorf("by default: verdict %s (%s), want none with the reason", r.Verdict, r.Message)
	}
}

func TestAReplayHasALookInEachInterval(t *testing.T) {
	target := v1alpha1.Target{New: `pod="new-1"`, StartTime: metav1.NewTime(at)}
	in := Read(t.Context(), shop{[]samples.Series{memory("new-1", -10*time.Minute, 5*time.Minute)}}, v1alpha1.MetricCheckSpec{}, target)
	for interval, want := range map[time.Duration]int32{LookInterval: 20, 2 * time.Minute: 3, time.Hour: 1} {
		if r := EvaluateLooks(in, interval); r.Looks != want || !r.LookTime.Time.Equal(at.Add(5*time.Minute)) {
			t.Errorf("every %s: %d looks, the last at %s, want %d", interval, r.Looks, r.LookTime, want)
		}
	}
}

// The label may exist only on failures, so the metric passes.
func TestAMetricSaysThatNoSeriesHasALabelOfItsBadEvents(t *testing.T) {
	const name = "http_server_request_duration_seconds_count"
	var series []samples.Series
	for pod, from := range map[string]time.Duration{"old-1": -10 * time.Minute, "new-1": -15 * time.Second} {
		series = append(series, requests(pod, from, 5*time.Minute, 5, nil))
	}
	target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
	for bad, want := range map[string]string{
		name + `{code=~"5..",{{pods}}}`: "; no series of query has label code",
		name + `{http_response_status_code=~"5..",{{pods}}} or ` + name + `{error_type!="",{{pods}}}`: "; no series of query has label error_type",
		name + `{http_response_status_code=~"5..",{{pods}}}`:                                          "",
		name + `{http_response_status_code=~"5..",region!="a",{{pods}}}`:                              "",
		`http_failures_total{code=~"5..",{{pods}}}`:                                                   "",
	} {
		own := v1alpha1.Metric{Name: "failures", Kind: v1alpha1.KindRatio, Query: name + "{{{pods}}}", Bad: bad}
		r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{DefaultMetrics: v1alpha1.DiscoverNone, Metrics: []v1alpha1.Metric{own}}, target)
		if want = "0 % of new pods against 0 % of old pods" + want; r.Verdict != v1alpha1.VerdictPass || r.Metrics[0].Message != want {
			t.Errorf("%s: verdict %s, message %q, want %q", bad, r.Verdict, r.Metrics[0].Message, want)
		}
	}
}

func TestRecordedReleasesWithoutTrafficHaveNoVerdict(t *testing.T) {
	url := recording.Start(t, recording.Tuning)
	client, err := prometheus.New(url, 15*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	path, err := recording.Tuning.File(recording.NoTraffic)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	list, err := calibrate.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		ready, err := time.Parse(time.RFC3339, one.At)
		if err != nil {
			t.Fatal(err)
		}
		r := Replay(t.Context(), client, v1alpha1.MetricCheckSpec{}, v1alpha1.Target{New: one.New, Old: one.Old, StartTime: metav1.NewTime(ready)})
		if r.Verdict != v1alpha1.VerdictNone || r.Reason != v1alpha1.ReasonInsufficientData {
			t.Errorf("%s: verdict %s, reason %s (%s), want none and InsufficientData", one.New, r.Verdict, r.Reason, r.Message)
		}
	}
}

func TestAPrometheusThatCannotBeReadIsNeverAPass(t *testing.T) {
	empty := `{"status":"success","data":{"resultType":"matrix","result":[]}}`
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		reason  string
	}{
		"5xx":                  {answer(http.StatusServiceUnavailable, "no"), v1alpha1.ReasonMetricsUnavailable},
		"wrong query":          {answer(http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"parse error"}`), v1alpha1.ReasonMetricsUnavailable},
		"too many samples":     {answer(http.StatusUnprocessableEntity, `{"status":"error","errorType":"execution","error":"too many samples"}`), v1alpha1.ReasonMetricsUnavailable},
		"no JSON":              {answer(http.StatusOK, "<html>"), v1alpha1.ReasonMetricsUnavailable},
		"cut off":              {answer(http.StatusOK, empty[:40]), v1alpha1.ReasonMetricsUnavailable},
		"a scalar":             {answer(http.StatusOK, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`), v1alpha1.ReasonMetricsUnavailable},
		"an incomplete answer": {answer(http.StatusOK, strings.Replace(empty, `{"status"`, `{"warnings":["store 2 is unreachable"],"status"`, 1)), v1alpha1.ReasonMetricsUnavailable},
		"a partial answer":     {answer(http.StatusOK, strings.Replace(empty, `"data"`, `"isPartial":true,"data"`, 1)), v1alpha1.ReasonMetricsUnavailable},
		"no partial answer":    {answer(http.StatusOK, strings.Replace(empty, `"data"`, `"isPartial":false,"data"`, 1)), v1alpha1.ReasonNoSeries},
		"slow":                 {slow, v1alpha1.ReasonMetricsUnavailable},
		"empty":                {answer(http.StatusOK, empty), v1alpha1.ReasonNoSeries},
		"down":                 {nil, v1alpha1.ReasonMetricsUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			t.Cleanup(server.Close)
			if c.handler == nil {
				server.Close()
			}
			client, err := prometheus.New(server.URL, 100*time.Millisecond, nil)
			if err != nil {
				t.Fatal(err)
			}
			target := v1alpha1.Target{New: `pod="new"`, Old: `pod="old"`, StartTime: metav1.NewTime(at)}
			r := Replay(t.Context(), client, v1alpha1.MetricCheckSpec{}, target)
			if r.Verdict != v1alpha1.VerdictNone || r.Reason != c.reason {
				t.Errorf("verdict %s, reason %s (%s), want none, %s", r.Verdict, r.Reason, r.Message, c.reason)
			}
		})
	}
}

// slow does not answer before the client closes the connection, which is noticed
// only after the body was read.
func slow(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestALookThatHasNotEndedNeverPasses(t *testing.T) {
	series := []samples.Series{requests("old-1", -10*time.Minute, 5*time.Minute, 50, nil), requests("new-1", -15*time.Second, 5*time.Minute, 50, nil)}
	target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
	until := at.Add(5 * time.Minute)
	var record *v1alpha1.Record
	for now := at.Add(15 * time.Second); now.Before(until); now = now.Add(15 * time.Second) {
		r := Look(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target, until, record, now)
		if r.Verdict != v1alpha1.VerdictNone || r.Reason != v1alpha1.ReasonAnalysisRunning || r.Final {
			t.Fatalf("at %s: verdict %s, reason %s, final %t, want none, AnalysisRunning, false", now, r.Verdict, r.Reason, r.Final)
		}
		record = &r
	}
	r := Look(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target, until, record, until.Add(time.Minute))
	if r.Verdict != v1alpha1.VerdictPass || !r.Final || r.Looks != record.Looks+1 {
		t.Errorf("verdict %s, final %t, looks %d, want pass, true, %d", r.Verdict, r.Final, r.Looks, record.Looks+1)
	}
}
