// Package samples turns raw series of Prometheus into counts and values per pod
// and cell. A cell is one interval of time. It handles counter resets, series that begin
// late, gaps and values that are not numbers.
package samples

import (
	"math"
	"slices"
	"sort"
	"strings"
)

// Point is one sample: Unix time in seconds, and the value.
type Point struct{ T, V float64 }

// Series are the samples of one set of labels, oldest first.
type Series struct {
	Labels map[string]string
	Points []Point
}

// podLabels are the labels that identify a pod, by precedence, after that of Named. The label of the called
// pod of a service graph is first, because label pod of these series is the caller. All series
// without any of these labels belong to one unnamed pod.
var podLabels = []string{nameLabel, "server_k8s_pod_name", "pod", "pod_name", "k8s_pod_name", "kubernetes_pod_name", "exported_pod",
	"service_instance_id", "exported_instance", "instance"}

// Pod returns the name of the pod of a series.
func Pod(labels map[string]string) string {
	for _, name := range podLabels {
		if v := labels[name]; v != "" {
			return v
		}
	}
	return ""
}

// Node returns the node of a series of cAdvisor or kube-state-metrics, or "".
func Node(labels map[string]string) string {
	for _, name := range []string{"node", "k8s_node_name", "kubernetes_node", "kubernetes_io_hostname"} {
		if v := labels[name]; v != "" {
			return v
		}
	}
	return ""
}

// strata are the labels that distinguish kinds of requests. Requests are compared with
// requests of the same kind, so that a different mix of kinds does not count as a change.
var strata = []string{"http_route", "route", "handler", "uri", "path", "span_name", "operation", "rpc_service",
	"rpc_method", "grpc_service", "grpc_method", "http_request_method", "http_method", "method", "span_kind",
	"server_address", "net_peer_name", "peer_service", "client"}

// Stratum returns the kind of request that a series counts.
func Stratum(labels map[string]string) string {
	var b strings.Builder
	for _, name := range strata {
		if v := labels[name]; v != "" {
			b.WriteString(name)
			b.WriteByte('=')
			b.WriteString(v)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// Until returns the series with the samples until t.
func Until(series []Series, t float64) []Series {
	out := make([]Series, 0, len(series))
	for _, s := range series {
		n := sort.Search(len(s.Points), func(i int) bool { return s.Points[i].T > t })
		if n > 0 {
			out = append(out, Series{Labels: s.Labels, Points: s.Points[:n]})
		}
	}
	return out
}

// Split divides the samples of pods at the times of their names. A pod without a time has all samples
// on both sides.
func Split(series []Series, times map[string]float64) (before, since []Series) {
	for _, s := range series {
		from, known := times[Pod(s.Labels)]
		if !known {
			before, since = append(before, s), append(since, s)
			continue
		}
		n := sort.Search(len(s.Points), func(i int) bool { return s.Points[i].T >= from })
		if n > 0 {
			before = append(before, Series{Labels: s.Labels, Points: s.Points[:n]})
		}
		if n < len(s.Points) {
			since = append(since, Series{Labels: s.Labels, Points: s.Points[n:]})
		}
	}
	return before, since
}

// Moved returns copies of the series that are later by some seconds.
func Moved(series []Series, seconds float64) []Series {
	if seconds == 0 {
		return series
	}
	out := make([]Series, len(series))
	for i, s := range series {
		out[i] = Series{Labels: s.Labels, Points: make([]Point, len(s.Points))}
		for k, p := range s.Points {
			out[i].Points[k] = Point{T: p.T + seconds, V: p.V}
		}
	}
	return out
}

// Numbers removes values that are not numbers: stale markers, NaN and infinities.
func Numbers(points []Point) []Point {
	if !slices.ContainsFunc(points, func(p Point) bool { return math.IsNaN(p.V) || math.IsInf(p.V, 0) }) {
		return points
	}
	var out []Point
	for _, p := range points {
		if !math.IsNaN(p.V) && !math.IsInf(p.V, 0) {
			out = append(out, p)
		}
	}
	return out
}

// Step returns the median time between two samples in seconds, or 0 with fewer than two samples.
func Step(series []Series) float64 {
	var steps []float64
	for _, s := range series {
		for i := 1; i < len(s.Points) && i < 8; i++ {
			steps = append(steps, s.Points[i].T-s.Points[i-1].T)
		}
		if len(steps) > 2000 {
			break
		}
	}
	if len(steps) == 0 {
		return 0
	}
	sort.Float64s(steps)
	return steps[len(steps)/2]
}
