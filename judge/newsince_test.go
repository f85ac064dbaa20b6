package judge

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// The times since when pods are new are facts of Kubernetes, so the record has them.
func TestALookAtPodsWithTheNamesOfEarlierOnesIsRecomputedFromItsRecord(t *testing.T) {
	const before, replaced, end = -10 * time.Minute, time.Minute, 5 * time.Minute
	reader := shop{slices.Concat(traffic("web-0", before, end, 0, end), traffic("web-1", before, replaced, 0, replaced))}
	reader.series = append(reader.series, traffic("web-1", replaced+15*time.Second, end, 0, end)...)
	target := v1alpha1.Target{New: `pod=~"web-1"`, Old: `pod=~"web-0"`, StartTime: metav1.NewTime(at), NewSince: map[string]metav1.Time{"web-1": metav1.NewTime(at.Add(replaced))}}
	r := Look(t.Context(), reader, v1alpha1.MetricCheckSpec{}, target, at.Add(end), nil, at.Add(end))
	record := checkRecomputed(t, reader, r)
	record.Target.NewSince = nil
	if without := Recompute(t.Context(), reader, v1alpha1.MetricCheckSpec{}, record); len(Differences(r, without)) == 0 && r.Metrics[0].New.Samples == without.Metrics[0].New.Samples {
		t.Error("the times in the record change nothing")
	}
}

// checkRecomputed fails unless the record is the same when it is recomputed after it was stored. It
// returns the stored record.
func checkRecomputed(t *testing.T, reader Reader, r v1alpha1.Record) (record v1alpha1.Record) {
	t.Helper()
	stored, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stored, &record); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(Recompute(t.Context(), reader, v1alpha1.MetricCheckSpec{}, record))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(stored), string(again)); diff != "" {
		t.Fatalf("at %s:\n%s", r.LookTime, diff)
	}
	return record
}
