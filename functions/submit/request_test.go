package submit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestAStartNamesItsPodsAndItsWorkload(t *testing.T) {
	last := func(p *v1alpha1.ChangePod) { p.Spec.TotalBatches, p.Spec.Last = 3, true }
	got := startOf(ft.NewRelease(), ft.NewBatch(3, []string{"a", "b"}, last), ft.Now())
	want := altershield.StartBatch{
		OrderID: ft.OrderID, BatchNo: 2, TotalBatches: 3, Last: true, StartTime: ft.Now(),
		Info: altershield.BatchInfo{
			Namespace: "default", WorkloadType: "Deployment", WorkloadName: "sleep", Pods: []string{"a", "b"}, Revision: ft.Version,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFinishHasNodePodsAndTime(t *testing.T) {
	got := finishOf(ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)), ft.Now())
	if got.NodeID != "n" || got.Failed || got.FinishTime.IsZero() || got.Result == nil || !cmp.Equal(got.Pods, []string{"a"}) {
		t.Errorf("got %+v", got)
	}
}
