package judge

import (
	"maps"
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
