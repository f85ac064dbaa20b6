package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// Prometheus scrapes a collector of OpenTelemetry, so the series of all pods have its name in label pod.
func TestTheLabelThatSelectsPodsNamesThem(t *testing.T) {
	const before, end = -10 * time.Minute, 5 * time.Minute
	for name, c := range map[string]struct {
		label, other string
		target       v1alpha1.Target
	}{
		"a known label":           {"k8s_pod_name", "pod", v1alpha1.Target{}},
		"a label of config-judge": {"podname", "instance", v1alpha1.Target{PodLabel: "podname"}},
	} {
		t.Run(name, func(t *testing.T) {
			var series []samples.Series
			add := func(pod string, from time.Duration) {
				for _, s := range []samples.Series{memory(pod, from, end), requests(pod, from, end, 5, nil)} {
					s.Labels[c.other], s.Labels[c.label] = "collector", s.Labels["pod"]
					if c.other != "pod" {
						delete(s.Labels, "pod")
					}
					series = append(series, s)
				}
			}
			for i := range 4 {
				add(fmt.Sprintf("old-%d", i), before)
			}
			for i := range 6 {
				add(fmt.Sprintf("new-%d", i), -15*time.Second)
			}
			c.target.New, c.target.Old, c.target.StartTime = c.label+`=~"new-.*"`, c.label+`=~"old-.*"`, metav1.NewTime(at)
			r := Replay(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, c.target)
			if r.Verdict != v1alpha1.VerdictPass {
				t.Errorf("verdict %s, reason %s (%s), want pass", r.Verdict, r.Reason, r.Message)
			}
			for _, e := range r.Metrics {
				if e.New.Pods != 6 || e.Old.Pods != 4 {
					t.Errorf("%s is of %d new and %d old pods, want 6 and 4", e.Name, e.New.Pods, e.Old.Pods)
				}
			}
			for _, s := range series {
				for label := range s.Labels {
					if strings.HasPrefix(label, "__") && label != "__name__" {
						t.Fatalf("the shared series was changed: %v", s.Labels)
					}
				}
			}
		})
	}
}
