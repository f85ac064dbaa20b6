package judge

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// calls returns what a service graph without names of pods counts for service
// shop: from the release on, half of the calls fail.
func calls(labels map[string]string) []samples.Series {
	of := func(name string, share float64, from time.Duration) samples.Series {
		s := samples.Series{Labels: map[string]string{"__name__": name, "client": "front", "server": "shop"}}
		maps.Copy(s.Labels, labels)
		total := 0.0
		for d := -10 * time.Minute; d <= 5*time.Minute; d += 15 * time.Second {
			if d > from {
				total += 75 * share
			}
			s.Points = append(s.Points, samples.Point{T: float64(at.Add(d).Unix()), V: total})
		}
		return s
	}
	return []samples.Series{of("traces_service_graph_request_total", 1, -10*time.Minute), of("traces_service_graph_request_failed_total", 0.5, 0)}
}

func TestCallersOfAServiceOfTheSameNameInAnotherNamespaceDoNotCount(t *testing.T) {
	const before, end = -10 * time.Minute, 5 * time.Minute
	for name, c := range map[string]struct {
		graph map[string]string
		want  v1alpha1.Verdict
	}{
		"of this namespace":  {map[string]string{"namespace": "here"}, v1alpha1.VerdictFail},
		"without namespaces": {nil, v1alpha1.VerdictFail},
		"of another one":     {map[string]string{"namespace": "there"}, v1alpha1.VerdictPass},
	} {
		t.Run(name, func(t *testing.T) {
			series := []samples.Series{requests("old-1", before, end, 5, nil), requests("old-2", before, end, 5, nil), requests("new-1", -15*time.Second, end, 5, nil)}
			for i := range series {
				series[i].Labels["namespace"], series[i].Labels["app"] = "here", "shop"
			}
			target := v1alpha1.Target{New: `namespace="here",pod=~"new-.*"`, Old: `namespace="here",pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
			r := Replay(t.Context(), shop{append(series, calls(c.graph)...)}, v1alpha1.MetricCheckSpec{}, target)
			if r.Verdict != c.want {
				t.Errorf("verdict %s, reason %s (%s), want %s", r.Verdict, r.Reason, r.Message, c.want)
			}
		})
	}
}

func TestCallersOfPodsOfTheSameNamesInAnotherNamespaceDoNotCount(t *testing.T) {
	const before, end = -10 * time.Minute, 5 * time.Minute
	for name, c := range map[string]struct {
		label string
		graph map[string]string
		want  v1alpha1.Verdict
	}{
		"of this namespace":                    {"k8s_namespace_name", map[string]string{"server_k8s_namespace_name": "here"}, v1alpha1.VerdictFail},
		"of another one":                       {"k8s_namespace_name", map[string]string{"server_k8s_namespace_name": "there"}, v1alpha1.VerdictPass},
		"of another one, without a prefix":     {"k8s_namespace_name", map[string]string{"k8s_namespace_name": "there"}, v1alpha1.VerdictPass},
		"of another one, with label namespace": {"namespace", map[string]string{"server_k8s_namespace_name": "there"}, v1alpha1.VerdictPass},
		"without namespaces":                   {"k8s_namespace_name", nil, v1alpha1.VerdictFail},
		"without namespaces, label namespace":  {"namespace", nil, v1alpha1.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			series := []samples.Series{requests("old-1", before, end, 5, nil), requests("old-2", before, end, 5, nil), requests("new-1", -15*time.Second, end, 5, nil)}
			for i := range series {
				series[i].Labels[c.label], series[i].Labels["k8s_pod_name"], series[i].Labels["app"] = "here", series[i].Labels["pod"], "shop"
			}
			of := func(pod string) []samples.Series {
				graph := calls(c.graph)
				for i := range graph {
					graph[i].Labels["server_k8s_pod_name"] = pod
				}
				return graph
			}
			series = slices.Concat(series, of("new-1"), of("old-1")[:1])
			target := v1alpha1.Target{New: c.label + `="here",k8s_pod_name=~"new-.*"`, Old: c.label + `="here",k8s_pod_name=~"old-.*"`, StartTime: metav1.NewTime(at)}
			r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target)
			if r.Verdict != c.want {
				t.Errorf("verdict %s, reason %s (%s), want %s", r.Verdict, r.Reason, r.Message, c.want)
			}
		})
	}
}

// Services of one version are not one service.
func TestCallersOfOtherServicesOfTheSameVersionDoNotCount(t *testing.T) {
	const before, end = -10 * time.Minute, 5 * time.Minute
	for name, c := range map[string]struct {
		// app is the name that the pods have, and server that in the service graph.
		app, server string
		graph       map[string]string
		want        v1alpha1.Verdict
	}{
		"of this service":                           {"shop", "shop", nil, v1alpha1.VerdictFail},
		"of another one":                            {"shop", "other", nil, v1alpha1.VerdictPass},
		"of another one, in this namespace":         {"shop", "other", map[string]string{"server_k8s_namespace_name": "here"}, v1alpha1.VerdictPass},
		"of another one, and the name is not known": {"", "other", nil, v1alpha1.VerdictPass},
	} {
		t.Run(name, func(t *testing.T) {
			series := []samples.Series{requests("old-1", before, end, 5, nil), requests("old-2", before, end, 5, nil), requests("new-1", -15*time.Second, end, 5, nil)}
			for i, version := range []string{"v1", "v1", "v2"} {
				maps.Copy(series[i].Labels, map[string]string{"namespace": "here", "version": version, "app": c.app})
			}
			of := func(version string) []samples.Series {
				graph := calls(c.graph)
				for i := range graph {
					graph[i].Labels["server"], graph[i].Labels["server_service_version"] = c.server, version
				}
				return graph
			}
			series = slices.Concat(series, of("v2"), of("v1")[:1])
			target := v1alpha1.Target{New: `namespace="here",version="v2"`, Old: `namespace="here",version="v1"`, StartTime: metav1.NewTime(at)}
			r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target)
			if r.Verdict != c.want {
				t.Errorf("verdict %s, reason %s (%s), want %s", r.Verdict, r.Reason, r.Message, c.want)
			}
		})
	}
}

func TestAMetricOfTheMetricCheckReplacesThatOfTheCallers(t *testing.T) {
	const before, end = -10 * time.Minute, 5 * time.Minute
	graph := func(query, bad, relative string) v1alpha1.Metric {
		return v1alpha1.Metric{Name: "callers-errors", Kind: v1alpha1.KindRatio, Query: query, Bad: bad,
			SmallestChange: &v1alpha1.Change{Relative: relative}}
	}
	const requestsOfGraph, failedOfGraph = `traces_service_graph_request_total{{{pods}}}`, `traces_service_graph_request_failed_total{{{pods}}}`
	for name, c := range map[string]struct {
		metric v1alpha1.Metric
		want   v1alpha1.Verdict
	}{
		"that tolerates the failed requests": {graph(requestsOfGraph, failedOfGraph, "100000%"), v1alpha1.VerdictPass},
		"that has no series":                 {graph(`no_such_total{{{pods}}}`, `no_such_failed_total{{{pods}}}`, "50%"), v1alpha1.VerdictNone},
	} {
		t.Run(name, func(t *testing.T) {
			series := []samples.Series{requests("old-1", before, end, 5, nil), requests("old-2", before, end, 5, nil), requests("new-1", -15*time.Second, end, 5, nil)}
			for i := range series {
				series[i].Labels["app"] = "shop"
			}
			target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, StartTime: metav1.NewTime(at)}
			series = slices.Concat(series, calls(map[string]string{"pod": "old-1"}), calls(map[string]string{"pod": "new-1"}))
			r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{Metrics: []v1alpha1.Metric{c.metric}}, target)
			n := 0
			for _, e := range r.Metrics {
				if e.Name == "callers-errors" {
					n++
				}
			}
			if r.Verdict != c.want || n != 1 {
				t.Errorf("verdict %s, reason %s (%s), %d metrics callers-errors; want %s and 1", r.Verdict, r.Reason, r.Message, n, c.want)
			}
		})
	}
}
