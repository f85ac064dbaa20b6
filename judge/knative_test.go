package judge

import (
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// queueProxy is what queue-proxy of a version of Serving shows at port 9091.
func queueProxy(t *testing.T, version string) (all []model.Metric) {
	t.Helper()
	text, err := os.Open("testdata/queue-proxy-" + version + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = text.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, families[name])
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range vector {
			all = append(all, sample.Metric)
		}
	}
	return all
}

// load is what a pod of a Revision serves.
type load struct {
	// perSecond is the rate of requests; failed and rejected are the percentages answered 500 and 404.
	perSecond, failed, rejected float64
	// mean is the mean time of a request.
	mean time.Duration
	// goroutines are those of queue-proxy.
	goroutines float64
}

// value returns a counter or gauge of queue-proxy after some seconds.
func (l load) value(m model.Metric, after float64) float64 {
	name := string(m[model.MetricNameLabel])
	if strings.HasPrefix(name, "go_") {
		return l.goroutines
	}
	share := map[string]float64{"200": 1 - l.failed/100 - l.rejected/100, "404": l.rejected / 100, "500": l.failed / 100}
	total := math.Floor(l.perSecond * after * share[string(m["http_response_status_code"]+m["response_code"])])
	if le := string(m["le"]); le != "" {
		bound, _ := strconv.ParseFloat(le, 64)
		if strings.Contains(name, "latencies") {
			bound /= 1000
		}
		return math.Floor(total * (1 - math.Exp(-bound/l.mean.Seconds())))
	}
	return total
}

// scraped returns the series of a pod from a time to another, with the labels of a scrape.
func (l load) scraped(shown []model.Metric, pod string, scrape map[string]string, from, to time.Duration) (all []samples.Series) {
	for _, m := range shown {
		s := samples.Series{Labels: map[string]string{"pod": pod}}
		maps.Copy(s.Labels, scrape)
		for label, value := range m {
			s.Labels[string(label)] = string(value)
		}
		for d := from; d <= to; d += 15 * time.Second {
			s.Points = append(s.Points, samples.Point{T: float64(at.Add(d).Unix()), V: l.value(m, (d - from).Seconds())})
		}
		all = append(all, s)
	}
	return all
}

const (
	beforeRelease = -10 * time.Minute
	endOfAnalysis = 5 * time.Minute
)

func replayKnative(t *testing.T, series []samples.Series) v1alpha1.Record {
	t.Helper()
	target := v1alpha1.Target{New: `pod=~"web-00002-.+"`, Old: `pod=~"web-00001-.+"`, StartTime: metav1.NewTime(at)}
	return Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target)
}

// steady is a load of which no metric is worse.
var steady = load{perSecond: 10, failed: 0.2, rejected: 2, mean: 40 * time.Millisecond, goroutines: 20}

func change(edit func(*load)) load {
	l := steady
	edit(&l)
	return l
}

func TestARevisionIsJudgedByTheSeriesOfQueueProxy(t *testing.T) {
	scrapes := map[string]map[string]string{
		"a PodMonitor":                     {"container": "queue-proxy", "instance": "10.0.0.7:9091"},
		"a scrape that names only the pod": {"instance": "10.0.0.7:9091"},
		"OpenTelemetry":                    {"container_name": "queue-proxy"},
	}
	for name, tc := range map[string]struct {
		fresh load
		want  v1alpha1.Verdict
		by    string
	}{
		"as before":                            {steady, v1alpha1.VerdictPass, ""},
		"7 % fail":                             {change(func(l *load) { l.failed = 7 }), v1alpha1.VerdictFail, "knative-errors: "},
		"twice as slow":                        {change(func(l *load) { l.mean *= 2 }), v1alpha1.VerdictFail, "knative-latency: "},
		"callers send more wrong requests":     {change(func(l *load) { l.rejected = 5 }), v1alpha1.VerdictPass, ""},
		"the new pods get more of the traffic": {change(func(l *load) { l.perSecond, l.goroutines = 40, 120 }), v1alpha1.VerdictPass, ""},
	} {
		for _, version := range queueProxyVersions {
			for how, scrape := range scrapes {
				t.Run(name+"/"+version+"/"+how, func(t *testing.T) {
					shown := queueProxy(t, version)
					series := tc.fresh.scraped(shown, "web-00002-a", scrape, 0, endOfAnalysis)
					for _, pod := range []string{"web-00001-a", "web-00001-b"} {
						series = append(series, steady.scraped(shown, pod, scrape, beforeRelease, endOfAnalysis)...)
					}
					r := replayKnative(t, series)
					if r.Verdict != tc.want || !strings.HasPrefix(r.Message, tc.by) {
						t.Errorf("verdict %s, reason %s (%s), want %s by %q", r.Verdict, r.Reason, r.Message, tc.want, tc.by)
					}
					for _, m := range r.Metrics {
						if !strings.HasPrefix(m.Name, "knative-") {
							t.Errorf("%s is compared: %s", m.Name, m.Message)
						}
					}
				})
			}
		}
	}
}

func TestTheSeriesOfAnApplicationBesideQueueProxyAreCompared(t *testing.T) {
	shown := queueProxy(t, "0.50")
	// The application has an HTTP client, too, whose series have the same names.
	calls := slices.DeleteFunc(slices.Clone(shown), func(m model.Metric) bool {
		return !strings.HasPrefix(string(m[model.MetricNameLabel]), "http_client_")
	})
	proxy, app := map[string]string{"instance": "10.0.0.7:9091"}, map[string]string{"instance": "10.0.0.7:8080"}
	failing := change(func(l *load) { l.failed = 7 })
	series := append(steady.scraped(shown, "web-00002-a", proxy, 0, endOfAnalysis), failing.scraped(calls, "web-00002-a", app, 0, endOfAnalysis)...)
	for _, pod := range []string{"web-00001-a", "web-00001-b"} {
		series = append(series, steady.scraped(shown, pod, proxy, beforeRelease, endOfAnalysis)...)
		series = append(series, steady.scraped(calls, pod, app, beforeRelease, endOfAnalysis)...)
	}
	if r := replayKnative(t, series); r.Verdict != v1alpha1.VerdictFail || !strings.HasPrefix(r.Message, "http-client-errors: ") {
		t.Errorf("verdict %s, reason %s (%s), want fail by http-client-errors", r.Verdict, r.Reason, r.Message)
	}
}

// ready are the series of kube-state-metrics about a pod of a Revision.
func ready(pod string, from time.Duration) (all []samples.Series) {
	for _, labels := range []map[string]string{
		{"__name__": "kube_pod_status_ready", "condition": "true", "pod": pod},
		{"__name__": "kube_pod_container_status_restarts_total", "container": "user-container", "pod": pod},
		{"__name__": "kube_pod_container_status_restarts_total", "container": "queue-proxy", "pod": pod},
	} {
		s := samples.Series{Labels: labels}
		for d := from; d <= endOfAnalysis; d += 15 * time.Second {
			p := samples.Point{T: float64(at.Add(d).Unix())}
			if labels["condition"] == "true" {
				p.V = 1
			}
			s.Points = append(s.Points, p)
		}
		all = append(all, s)
	}
	return all
}

// The traffic decides which pods have requests, and the autoscaler which pods there are.
func TestARevisionWithoutTrafficOrReferenceHasNoVerdict(t *testing.T) {
	scrape := map[string]string{"instance": "10.0.0.7:9091"}
	idle := change(func(l *load) { l.perSecond = 0 })
	bad := change(func(l *load) { l.failed = 7 })
	for name, tc := range map[string]struct {
		fresh load
		// end is when the series of the new pod end.
		end time.Duration
		// old is when the series of the old pods begin and end; the same twice for no series.
		old    [2]time.Duration
		want   v1alpha1.Verdict
		reason string
	}{
		"the old Revision scaled to zero when the new one was Ready": {steady, endOfAnalysis, [2]time.Duration{beforeRelease, 30 * time.Second}, v1alpha1.VerdictPass, v1alpha1.ReasonNoChange},
		"it scaled to zero, and the new one fails":                   {bad, endOfAnalysis, [2]time.Duration{beforeRelease, 30 * time.Second}, v1alpha1.VerdictFail, v1alpha1.ReasonMetricWorse},
		"it scaled to zero some minutes before":                      {steady, endOfAnalysis, [2]time.Duration{beforeRelease, -4 * time.Minute}, v1alpha1.VerdictPass, v1alpha1.ReasonNoChange},
		"it had no pods in the minutes before":                       {steady, endOfAnalysis, [2]time.Duration{}, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"it had no pods, and the new one fails":                      {bad, endOfAnalysis, [2]time.Duration{}, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
		"all traffic is pinned to the old Revision":                  {idle, endOfAnalysis, [2]time.Duration{beforeRelease, endOfAnalysis}, v1alpha1.VerdictNone, v1alpha1.ReasonNoTraffic},
		"the new Revision scaled to zero":                            {steady, 2 * time.Minute, [2]time.Duration{beforeRelease, endOfAnalysis}, v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData},
	} {
		for _, version := range queueProxyVersions {
			t.Run(name+"/"+version, func(t *testing.T) {
				shown := queueProxy(t, version)
				series := append(tc.fresh.scraped(shown, "web-00002-a", scrape, 0, tc.end), ready("web-00002-a", 0)...)
				if tc.old[0] != tc.old[1] {
					for _, pod := range []string{"web-00001-a", "web-00001-b"} {
						series = append(append(series, steady.scraped(shown, pod, scrape, tc.old[0], tc.old[1])...), ready(pod, tc.old[0])...)
					}
				}
				r := replayKnative(t, series)
				if r.Verdict != tc.want || r.Reason != tc.reason {
					t.Errorf("verdict %s, reason %s (%s), want %s, %s", r.Verdict, r.Reason, r.Message, tc.want, tc.reason)
				}
			})
		}
	}
}

// queueProxyVersions are the versions of Serving of which the series are known.
var queueProxyVersions = []string{"0.45", "0.50"}
