package callback

import (
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestWhatIsDoneWithAVerdict(t *testing.T) {
	type batches = []*v1alpha1.ChangePod
	a := []string{"a"}
	const pre = v1alpha1.StagePre
	started := ft.NewBatch(1, a, ft.Started("n", 0))
	calling := func(ago time.Duration) *v1alpha1.ChangePod { return ft.NewBatch(2, a, ft.Intent(pre, ago)) }
	for name, tc := range map[string]struct {
		check   altershield.CheckType
		unknown bool // the order
		batches batches
		want    outcome
	}{
		"its node is known": {altershield.CheckBatch, false, batches{started}, deliver},
		"its node is known, and others are being started": {altershield.CheckBatch, false, batches{calling(0), started}, deliver},
		"a type of check that nobody knows":               {"CHANGE_NEXT", false, batches{started}, deliver},
		"its order is unknown":                            {altershield.CheckBatch, true, nil, drop},
		"it is about an order that is unknown":            {altershield.CheckOrder, true, nil, drop},
		"it is about the whole order":                     {altershield.CheckOrder, false, batches{started}, note},
		"it is early":                                     {altershield.CheckBatch, false, batches{calling(time.Second)}, keep},
		"it is early by almost all that a call can take":  {altershield.CheckBatch, false, batches{calling(19 * time.Second)}, keep},
		"no start can still be answered":                  {altershield.CheckBatch, false, batches{calling(21 * time.Second)}, drop},
		"a start is answered, with another node":          {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("m", 0))}, drop},
		"a finish is unanswered, which has no new node":   {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("m", 0), ft.Intent(v1alpha1.StagePost, 0))}, drop},
		"there is no batch":                               {altershield.CheckBatch, false, nil, drop},
	} {
		t.Run(name, func(t *testing.T) {
			in := input{check: tc.check, node: "n", workload: ft.NewRelease(), now: ft.Now(), callDeadline: 15 * time.Second}
			if tc.unknown {
				in.workload = nil
			}
			for _, b := range tc.batches {
				in.batches = append(in.batches, *b)
			}
			got, batch := decide(in)
			if got != tc.want || (batch != nil) != (tc.want == deliver) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
