package judge

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/test/recording"
)

// The recorded releases are looked at as if each had succeeded after a minute.
func TestProbationFailsRecordedReleasesWithErrorsOrRestartsAndNoGoodOne(t *testing.T) {
	client, err := prometheus.New(recording.Start(t, recording.Tuning), 15*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	faults := map[string]map[string]string{}
	for _, row := range recording.Tuning.Rows(t, recording.Faults) {
		faults[row["new"]] = row
	}
	for _, row := range recording.Tuning.Rows(t, recording.Labels) {
		start, err := time.Parse(time.RFC3339, row["at"])
		if err != nil {
			t.Fatal(err)
		}
		l := ProbationLook{Target: v1alpha1.Target{New: row["new"], Old: row["old"], StartTime: metav1.NewTime(start)},
			Success: start.Add(time.Minute), End: start.Add(5 * time.Minute)}
		for _, after := range []time.Duration{2 * time.Minute, 5 * time.Minute} {
			r := LookDuringProbation(t.Context(), client, l, start.Add(after))
			l.Previous = &r
			for _, m := range r.Metrics {
				if m.Reason == v1alpha1.ReasonMetricsUnavailable {
					t.Fatalf("%s: %s", m.Name, m.Message)
				}
			}
		}
		fault, r := faults[row["new"]], l.Previous
		if row["label"] == "good" && r.Verdict == v1alpha1.VerdictFail {
			t.Errorf("%s, which is good, fails: %s", row["new"], r.Message)
		}
		if slices.Contains([]string{"errors", "crash-loop"}, fault["fault"]) && r.Verdict != v1alpha1.VerdictFail {
			t.Errorf("%s with fault %s: %s, %s", row["new"], fault["fault"], r.Verdict, r.Message)
		}
	}
}
