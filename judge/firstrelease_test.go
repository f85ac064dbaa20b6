package judge

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// started returns the requests of a pod from its start on. Until it is Ready, at the start of the release, it answers
// the probes of the kubelet with 503. Then a share of 50 requests/s fails.
func started(pod string, start, end time.Duration, share float64) []samples.Series {
	const name = "http_server_request_duration_seconds_count"
	of := func(code string, from time.Duration, increase func(time.Duration) float64) samples.Series {
		return counts(name, pod, map[string]string{"http_response_status_code": code}, from, end, increase)
	}
	return []samples.Series{
		of("503", start, func(d time.Duration) float64 {
			if d < 0 {
				return 3
			}
			return 0
		}),
		of("200", 0, func(time.Duration) float64 { return 750 * (1 - share) }),
		of("500", 0, func(time.Duration) float64 { return 750 * share }),
	}
}

// durations returns a histogram of a pod: its probes take 5 ms until it is Ready, and its requests then 100 ms.
func durations(pod string, start, end time.Duration) []samples.Series {
	var out []samples.Series
	for le, slow := range map[string]bool{"0.005": false, "0.1": true, "1": true, "+Inf": true} {
		labels := map[string]string{"http_response_status_code": "200", "le": le}
		out = append(out, counts("http_server_request_duration_seconds_bucket", pod, labels, start, end, func(d time.Duration) float64 {
			switch {
			case d < 0:
				return 15
			case slow:
				return 750
			default:
				return 0
			}
		}))
	}
	return out
}

// A pod is scraped before it is Ready. Without old pods, these minutes would be its reference.
func TestNewPodsAreNotComparedWithTheirOwnStart(t *testing.T) {
	const end = 5 * time.Minute
	const news, olds = `pod=~"new-.*"`, `pod=~"old-.*"`
	for name, c := range map[string]struct {
		series []samples.Series
		old    string
		until  time.Duration
	}{
		"of a bad first release":                           {started("new-1", -3*time.Minute, end, 0.1), "", end},
		"of a good first release":                          {durations("new-1", -3*time.Minute, end), "", end},
		"of pods of an earlier batch of a slow release":    {started("new-1", -3*time.Minute, 25*time.Minute, 0.1), "", 25 * time.Minute},
		"of a version that gives its metrics another name": {append(started("new-1", -7*time.Minute, end, 0.1), memory("old-1", -10*time.Minute, end)), olds, end},
	} {
		t.Run(name, func(t *testing.T) {
			target := v1alpha1.Target{New: news, Old: c.old, NoReferenceBefore: true, StartTime: metav1.NewTime(at)}
			until := at.Add(c.until)
			r := Look(t.Context(), shop{c.series}, v1alpha1.MetricCheckSpec{}, target, until, nil, until)
			if r.Verdict != v1alpha1.VerdictNone || r.Reason != v1alpha1.ReasonInsufficientData || !r.Final {
				t.Errorf("verdict %s, reason %s (%s), want none, InsufficientData", r.Verdict, r.Reason, r.Message)
			}
			checkRecomputed(t, shop{c.series}, r)
		})
	}
}

// An autoscaler may add pods long after the old ones ended. The first pods of the release were compared with these.
func TestPodsThatJoinLateAreComparedWithEarlierPodsOfTheRelease(t *testing.T) {
	const joined = 12*time.Minute + 30*time.Second
	for name, c := range map[string]struct {
		errors float64
		want   v1alpha1.Verdict
	}{
		"without a fault": {0, v1alpha1.VerdictPass},
		"with a fault":    {0.5, v1alpha1.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			until := at.Add(joined + 5*time.Minute)
			requests := func(pod, code string, from, end time.Duration, rate float64) samples.Series {
				labels := map[string]string{"http_response_status_code": code}
				return counts("http_server_request_duration_seconds_count", pod, labels, from, end, func(time.Duration) float64 { return rate })
			}
			end := until.Sub(at)
			series := []samples.Series{
				requests("old-1", "200", -time.Hour, time.Minute, 750), requests("new-1", "200", 0, end, 750),
				requests("new-2", "200", joined, end, 750*(1-c.errors)), requests("new-2", "500", joined, end, 750*c.errors),
			}
			target := v1alpha1.Target{New: `pod=~"new-.*"`, Old: `pod=~"old-.*"`, NoReferenceBefore: true, StartTime: metav1.NewTime(at)}
			r := Look(t.Context(), shop{series}, v1alpha1.MetricCheckSpec{}, target, until, nil, until)
			if r.Verdict != c.want {
				t.Errorf("verdict %s, reason %s (%s), want %s", r.Verdict, r.Reason, r.Message, c.want)
			}
			checkRecomputed(t, shop{series}, r)
		})
	}
}

// During probation a pod is compared with itself before the compared time.
func TestDuringProbationNewPodsAreNotComparedWithTheirOwnStart(t *testing.T) {
	const end = succeeded + time.Hour
	late := func(d time.Duration) float64 {
		if d < succeeded+30*time.Minute {
			return 0
		}
		return 75
	}
	failing := counts("http_server_request_duration_seconds_count", "new-1", map[string]string{"http_response_status_code": "500"}, 0, end, late)
	for name, c := range map[string]struct {
		series []samples.Series
		want   v1alpha1.Verdict
	}{
		"without a fault": {started("new-1", -3*time.Minute, end, 0), v1alpha1.VerdictPass},
		"a late fault":    {append(started("new-1", -3*time.Minute, end, 0)[:2], failing), v1alpha1.VerdictFail},
		"restarts until it was Ready, and again later": {append(started("new-1", -3*time.Minute, end, 0),
			restarts("new-1", -3*time.Minute, end, -2*time.Minute, -time.Minute, 40*time.Minute, 50*time.Minute)), v1alpha1.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			l := ProbationLook{
				Target:  v1alpha1.Target{New: `pod=~"new-.*"`, NoReferenceBefore: true, StartTime: metav1.NewTime(at)},
				Success: at.Add(succeeded), End: at.Add(end),
			}
			for _, after := range []time.Duration{10, 30, 60} {
				r := LookDuringProbation(t.Context(), shop{c.series}, l, l.Success.Add(after*time.Minute))
				l.Previous = &r
			}
			if r := l.Previous; r.Verdict != c.want {
				t.Errorf("verdict %s, reason %s (%s), want %s", r.Verdict, r.Reason, r.Message, c.want)
			}
		})
	}
}
