package judge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// counter returns a counter of one pod that increases by one a second.
func counter(name, pod string, labels map[string]string) samples.Series {
	s := samples.Series{Labels: map[string]string{"__name__": name, "pod": pod}}
	maps.Copy(s.Labels, labels)
	for d := -10 * time.Minute; d <= 5*time.Minute; d += 15 * time.Second {
		s.Points = append(s.Points, samples.Point{T: float64(at.Add(d).Unix()), V: (d + 10*time.Minute).Seconds()})
	}
	return s
}

func TestTheRequestsOfPodsAreThoseOfTheFirstMetricThatBothHave(t *testing.T) {
	const spans, server, cpu = "calls_total", "http_server_request_duration_seconds_count", "container_cpu_usage_seconds_total"
	status := map[string]string{"http_response_status_code": "200"}
	incoming := map[string]string{"span_kind": "SPAN_KIND_SERVER", "status_code": "STATUS_CODE_UNSET"}
	outgoing := map[string]string{"span_kind": "SPAN_KIND_CLIENT", "status_code": "STATUS_CODE_UNSET"}
	for name, c := range map[string]struct {
		series []samples.Series
		// want is the name of the series of requests; empty for none.
		want string
	}{
		"both metrics":                           {[]samples.Series{counter(spans, "new", incoming), counter(spans, "old", incoming), counter(server, "new", status), counter(server, "old", status)}, spans},
		"the first has outgoing calls only":      {[]samples.Series{counter(spans, "new", outgoing), counter(spans, "old", outgoing), counter(server, "new", status), counter(server, "old", status)}, server},
		"the first has series of old pods only":  {[]samples.Series{counter(spans, "old", incoming), counter(server, "new", status), counter(server, "old", status)}, server},
		"the first has series of new pods only":  {[]samples.Series{counter(spans, "new", incoming), counter(server, "new", status), counter(server, "old", status)}, server},
		"no metric has series of both":           {[]samples.Series{counter(spans, "new", incoming), counter(server, "old", status)}, ""},
		"outgoing calls only, no other requests": {[]samples.Series{counter(spans, "new", outgoing), counter(spans, "old", outgoing)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			target := v1alpha1.Target{New: `pod="new"`, Old: `pod="old"`, StartTime: metav1.NewTime(at)}
			series := append([]samples.Series{counter(cpu, "new", nil), counter(cpu, "old", nil)}, c.series...)
			in := read(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target, at.Add(5*time.Minute))
			for _, m := range in.Metrics {
				if !m.PerRequest {
					continue
				}
				for side, requests := range map[string][]samples.Series{"new": m.Requests.New, "old": m.Requests.Old} {
					if got := nameOf(requests); got != c.want {
						t.Errorf("the requests of the %s pods are %q, want %q", side, got, c.want)
					}
				}
				return
			}
			t.Fatal("no metric is compared per request")
		})
	}
}

// nameOf returns the name of the only series; empty for none.
func nameOf(series []samples.Series) string {
	if len(series) == 0 {
		return ""
	}
	return series[0].Labels["__name__"]
}

// remembering answers a query again with the same series, as a cache does.
type remembering struct {
	shop
	mu      *sync.Mutex
	answers map[string][]samples.Series
}

func (r remembering) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprint(expression, from, to)
	if answer, ok := r.answers[key]; ok {
		return answer, nil
	}
	answer, err := r.shop.Range(ctx, expression, from, to, step)
	r.answers[key] = answer
	return answer, err
}

func TestALookDoesNotChangeTheSeriesThatOthersRead(t *testing.T) {
	const end = 5 * time.Minute
	reader := remembering{shop{[]samples.Series{requests("new-1", -25*time.Hour, end, 5, nil)}}, &sync.Mutex{}, map[string][]samples.Series{}}
	target := v1alpha1.Target{New: `pod=~"new-.*"`, StartTime: metav1.NewTime(at)}
	for range 2 {
		Look(t.Context(), reader, v1alpha1.MetricCheckSpec{}, target, at.Add(end), nil, at.Add(end))
	}
	for _, answer := range reader.answers {
		for _, s := range answer {
			if late := s.Points[len(s.Points)-1].T - float64(at.Add(end).Unix()); late > 0 {
				t.Errorf("a shared series has a sample %.0f s after the look", late)
			}
		}
	}
}

// Prometheus evaluates an expression with "or" at steps, so its samples would have other times than those of all requests.
func TestBadRequestsOfSeveralLabelsAreFoundAmongAllRequests(t *testing.T) {
	const istio = "istio_requests_total"
	labels := func(code, grpc string) map[string]string {
		return map[string]string{"reporter": "destination", "response_code": code, "grpc_response_status": grpc}
	}
	series := []samples.Series{counter(istio, "old", labels("200", ""))}
	for _, l := range []map[string]string{labels("200", ""), labels("200", "0"), labels("200", "13"), labels("503", ""), labels("503", "14"), labels("404", "")} {
		series = append(series, counter(istio, "new", l))
	}
	target := v1alpha1.Target{New: `pod="new"`, Old: `pod="old"`, StartTime: metav1.NewTime(at)}
	in := read(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target, at.Add(5*time.Minute))
	for _, m := range in.Metrics {
		if m.Name != "istio-errors" {
			continue
		}
		var got []string
		for _, s := range m.New.Bad {
			got = append(got, s.Labels["response_code"]+" "+s.Labels["grpc_response_status"])
		}
		if want := []string{"200 13", "503 ", "503 14"}; m.Err != nil || !slices.Equal(got, want) {
			t.Errorf("the bad requests are %q (%v), want %q", got, m.Err, want)
		}
		return
	}
	t.Fatal("no metric of the requests of Istio")
}
