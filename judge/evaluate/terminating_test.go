package evaluate

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// readyOf returns whether a pod is Ready between two times, and that it is deleted from another time on.
func readyOf(pod, uid string, first, last float64, ready func(at float64) bool, deleted float64) []samples.Series {
	labels := func(name string) map[string]string {
		return map[string]string{"__name__": name, "condition": "true", "pod": pod, "uid": uid}
	}
	out := []samples.Series{seriesOf(labels("kube_pod_status_ready"), first, last, func(at float64) float64 {
		if ready(at) {
			return 1
		}
		return 0
	})}
	if deleted <= last {
		out = append(out, seriesOf(labels("kube_pod_deletion_timestamp"), deleted, last, func(float64) float64 { return start + deleted + 30 }))
	}
	return out
}

// A terminating pod is not Ready until its containers have ended: after a scale-down or a drain.
func TestATerminatingPodIsNotUnready(t *testing.T) {
	const never = 1e6
	until := func(end float64) func(float64) bool { return func(at float64) bool { return at <= end } }
	always := until(never)
	for name, c := range map[string]struct {
		news [][]samples.Series
		now  time.Duration
		want string
	}{
		"terminating":                          {[][]samples.Series{readyOf("new-1", "a", -15, 150, until(90), 105), readyOf("new-2", "b", -15, 150, always, never)}, 155 * time.Second, ""},
		"terminating for two minutes":          {[][]samples.Series{readyOf("new-1", "a", -15, 240, until(90), 105), readyOf("new-2", "b", -15, 240, always, never)}, 245 * time.Second, ""},
		"not Ready, and not terminating":       {[][]samples.Series{readyOf("new-1", "a", -15, 150, until(90), never), readyOf("new-2", "b", -15, 150, always, never)}, 155 * time.Second, "not Ready any more: new-1"},
		"not Ready before its deletion":        {[][]samples.Series{readyOf("new-1", "a", -15, 150, until(0), 135), readyOf("new-2", "b", -15, 150, always, never)}, 155 * time.Second, "not Ready any more: new-1"},
		"the next pod of the name terminates":  {[][]samples.Series{readyOf("new-1", "a", -15, 75, always, 60), readyOf("new-1", "b", 90, 285, until(180), 195)}, 290 * time.Second, ""},
		"the next pod of the name is unready":  {[][]samples.Series{readyOf("new-1", "a", -15, 75, always, 60), readyOf("new-1", "b", 90, 285, until(105), never)}, 290 * time.Second, "not Ready any more: new-1"},
		"the next pod is unready, without UID": {[][]samples.Series{readyOf("new-1", "", -15, 75, always, 60), readyOf("new-1", "", 90, 285, until(105), never)}, 290 * time.Second, "not Ready any more: new-1"},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.UnixMilli(int64(start * 1000))
			d := Data{Metric: catalog.Metric{Signal: catalog.Health}, New: Pair{All: slices.Concat(c.news...)}}
			for _, pod := range []string{"old-1", "old-2"} {
				d.Old.All = append(d.Old.All, readyOf(pod, pod, -595, c.now.Seconds(), always, never)...)
			}
			o := compareMetric(Input{Check: Defaulted(v1alpha1.MetricCheckSpec{}), Target: v1alpha1.Target{StartTime: metav1.NewTime(at)}, Now: at.Add(c.now), End: at.Add(5 * time.Minute)}, d)
			if o.message != c.want {
				t.Errorf("the message is %q, want %q", o.message, c.want)
			}
		})
	}
}
