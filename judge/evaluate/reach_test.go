package evaluate

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

func TestReadyPodsWithoutRequestsAreAFailIfRequestsAreEvenlyDistributed(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		// old are the requests per second of the old pods.
		old []float64
		// ready is when the new pod becomes Ready; a negative time is before the change.
		ready  time.Duration
		signal catalog.Signal
		reason string
		// idle old pods are Ready and have no series of requests.
		idle int
		// other is the name of another series of the new pod, with 60 events.
		other string
		// server is the service of a series of a gRPC server of an old pod.
		server string
	}{
		"evenly distributed":                       {[]float64{1, 1, 0.8}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonPodsWithoutRequests, 0, "process_cpu_seconds_total", ""},
		"clients keep their connections":           {[]float64{2, 2, 0.1}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "process_cpu_seconds_total", ""},
		"clients of gRPC keep their connections":   {[]float64{1, 1, 0.8}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "process_cpu_seconds_total", "shop.Orders"},
		"the probes of the kubelet are gRPC":       {[]float64{1, 1, 0.8}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonPodsWithoutRequests, 0, "process_cpu_seconds_total", "grpc.health.v1.Health"},
		"one old pod: the distribution is unknown": {[]float64{2}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "process_cpu_seconds_total", ""},
		"too few requests":                         {[]float64{0.01, 0.01}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "process_cpu_seconds_total", ""},
		"Ready for less than two minutes":          {[]float64{1, 1}, 200 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "process_cpu_seconds_total", ""},
		"never Ready":                              {[]float64{1, 1}, never, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "process_cpu_seconds_total", ""},
		"an old pod has never had a request":       {[]float64{1, 1}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 1, "process_cpu_seconds_total", ""},
		"requests have another name":               {[]float64{1, 1}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "http_server_duration_milliseconds_count", ""},
		"the new pod is not scraped":               {[]float64{1, 1}, -5 * time.Second, catalog.Errors, v1alpha1.ReasonNoTraffic, 0, "container_threads", ""},
		"a metric of the MetricCheck":              {[]float64{1, 1}, -5 * time.Second, catalog.Custom, v1alpha1.ReasonNoTraffic, 0, "process_cpu_seconds_total", ""},
	} {
		t.Run(name, func(t *testing.T) {
			requests := Data{Metric: catalog.Metric{Signal: c.signal, Metric: v1alpha1.Metric{Name: "errors", Kind: v1alpha1.KindRatio, Direction: v1alpha1.DirectionHigher}}}
			health := Data{Metric: catalog.Metric{Signal: catalog.Health, Metric: v1alpha1.Metric{Name: "health", Kind: v1alpha1.KindCounter}}}
			readySeries := func(pod string) samples.Series {
				return samples.Series{Labels: map[string]string{"__name__": "kube_pod_status_ready", "condition": "true", "pod": pod}}
			}
			ready := readySeries("new")
			other := Data{Metric: catalog.Metric{Signal: catalog.Resources, Metric: v1alpha1.Metric{Name: "other", Kind: v1alpha1.KindCounter}}}
			// The rejected requests are of the same series.
			rejected := requests
			rejected.Name, rejected.Signal, rejected.CausedByCallers = "rejected", catalog.Errors, true
			if strings.HasPrefix(c.other, "http_") {
				other.Signal, other.Kind = catalog.Errors, v1alpha1.KindRatio
			}
			for range c.idle + len(c.old) {
				s := readySeries("old-" + string(rune('a'+len(health.Old.All))))
				for d := -10 * time.Minute; d <= 5*time.Minute; d += 15 * time.Second {
					s.Points = append(s.Points, samples.Point{T: start + d.Seconds(), V: 1})
				}
				health.Old.All = append(health.Old.All, s)
			}
			series := samples.Series{Labels: map[string]string{"__name__": c.other, "pod": "new"}}
			for i, rate := range c.old {
				s := samples.Series{Labels: map[string]string{"pod": "old-" + string(rune('a'+i)), "code": "200"}}
				for d := -10 * time.Minute; d <= 5*time.Minute; d += 15 * time.Second {
					s.Points = append(s.Points, samples.Point{T: start + d.Seconds(), V: rate * (d + 10*time.Minute).Seconds()})
				}
				requests.Old.All = append(requests.Old.All, s)
			}
			for d := -15 * time.Second; d <= 5*time.Minute; d += 15 * time.Second {
				p := samples.Point{T: start + d.Seconds()}
				if d > c.ready {
					p.V = 1
				}
				ready.Points = append(ready.Points, p)
				series.Points = append(series.Points, samples.Point{T: p.T, V: 60})
			}
			other.New.All = []samples.Series{series}
			if c.server != "" {
				other.Old.All = []samples.Series{{Labels: map[string]string{"__name__": "grpc_server_handled_total", "grpc_service": c.server, "pod": "old-a"}}}
			}
			rejected.Old = requests.Old
			health.New.All = []samples.Series{ready}
			at := time.UnixMilli(int64(start * 1000))
			end := at.Add(5 * time.Minute)
			for exporters, health := range map[string]Data{"one": health, "two": twice(health)} {
				r := Evaluate(Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{StartTime: metav1.NewTime(at)},
					Metrics: []Data{requests, rejected, other, health}, Now: end, End: end}, nil)
				for _, e := range r.Metrics {
					if e.Name == "errors" && e.Reason != c.reason {
						t.Errorf("%s kube-state-metrics: reason %s (%s), want %s", exporters, e.Reason, e.Message, c.reason)
					}
					if e.Name == "rejected" && e.Reason != v1alpha1.ReasonNoTraffic {
						t.Errorf("rejected requests: reason %s (%s), want %s", e.Reason, e.Message, v1alpha1.ReasonNoTraffic)
					}
					if e.Name == "errors" && c.reason == v1alpha1.ReasonPodsWithoutRequests && !strings.HasPrefix(e.Message, "1 new pods") {
						t.Errorf("%s kube-state-metrics: message %q", exporters, e.Message)
					}
				}
				if fails := r.Reason == v1alpha1.ReasonPodsWithoutRequests; fails != (c.reason == v1alpha1.ReasonPodsWithoutRequests) || fails != (fails && r.Verdict == v1alpha1.VerdictFail) {
					t.Errorf("%s kube-state-metrics: verdict %s, reason %s", exporters, r.Verdict, r.Reason)
				}
			}
		})
	}
}

// twice returns the series as two kube-state-metrics show them, one a few seconds after the other.
func twice(d Data) Data {
	for _, side := range []*Pair{&d.New, &d.Old} {
		for _, s := range side.All {
			second := samples.Series{Labels: maps.Clone(s.Labels)}
			second.Labels["instance"] = "second"
			for _, p := range s.Points {
				second.Points = append(second.Points, samples.Point{T: p.T + 4, V: p.V})
			}
			side.All = append(side.All, second)
		}
	}
	return d
}
