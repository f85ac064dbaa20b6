package submit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestTheNumberOfBatchesIsTheBestEstimate(t *testing.T) {
	for name, tc := range map[string]struct {
		pods, size, batchNo, want int32
	}{
		"nothing is counted yet":              {0, 1, 0, 1},
		"one pod a batch":                     {10, 1, 2, 10},
		"the last batch is not full":          {10, 4, 0, 3},
		"more batches came than were thought": {10, 5, 4, 5},
		"a size that makes no sense":          {3, 0, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
				w.Status.Counts.Pods, w.Spec.CountThreshold = tc.pods, tc.size
			})
			if got := totalBatches(w, tc.batchNo); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAStartSaysWhichPodsOfWhatItIsAbout(t *testing.T) {
	got := startOf(ft.NewRelease(), ft.NewBatch(3, []string{"a", "b"}), ft.Now())
	want := altershield.StartBatch{
		OrderID: ft.OrderID, BatchNo: 2, TotalBatches: 3, StartTime: ft.Now(),
		Info: altershield.BatchInfo{
			Namespace: "default", WorkloadType: "Deployment", WorkloadName: "sleep", Pods: []string{"a", "b"}, Revision: ft.Version,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFinishAlwaysHasItsTime(t *testing.T) {
	got := finishOf(ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.Now())
	if got.NodeID != "n" || got.Failed || got.FinishTime.IsZero() || got.Result == nil || !cmp.Equal(got.Pods, []string{"a"}) {
		t.Errorf("got %+v", got)
	}
}
