package callback

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	orderNode := func(node string) func(*v1alpha1.Order) {
		return func(o *v1alpha1.Order) { o.NodeID = node }
	}
	orderCalling := func(ago time.Duration) func(*v1alpha1.Order) {
		return func(o *v1alpha1.Order) {
			o.Submissions = []v1alpha1.Submission{{Stage: pre, IntentTime: metav1.NewMicroTime(ft.Now().Add(-ago)), Attempts: 1}}
		}
	}
	for name, tc := range map[string]struct {
		check   altershield.CheckType
		unknown bool // the order
		batches batches
		want    outcome
		order   func(*v1alpha1.Order)
	}{
		"its node is known": {altershield.CheckBatch, false, batches{started}, deliver, nil},
		"its node is known, and others are being started": {altershield.CheckBatch, false, batches{calling(0), started}, deliver, nil},
		"a type of check that nobody knows":               {"CHANGE_NEXT", false, batches{started}, deliver, nil},
		"its order is unknown":                            {altershield.CheckBatch, true, nil, drop, nil},
		"it is about an order that is unknown":            {altershield.CheckOrder, true, nil, drop, nil},
		"it says order, and its node is a batch's":        {altershield.CheckOrder, false, batches{started}, deliver, nil},
		"its node is that of the order":                   {altershield.CheckOrder, false, nil, deliverOrder, orderNode("n")},
		"a CloudEvent, whose node is that of the order":   {"", false, batches{calling(0)}, deliverOrder, orderNode("n")},
		"the order has another node":                      {altershield.CheckOrder, false, batches{calling(0)}, drop, orderNode("m")},
		"the order is being started":                      {altershield.CheckOrder, false, nil, keep, orderCalling(time.Second)},
		"a CloudEvent, and the order is being started":    {"", false, nil, keep, orderCalling(time.Second)},
		"a batch, and the order is being started":         {altershield.CheckBatch, false, nil, drop, orderCalling(time.Second)},
		"the start of the order can not be answered":      {altershield.CheckOrder, false, nil, drop, orderCalling(21 * time.Second)},
		"the order, and a batch is being started":         {altershield.CheckOrder, false, batches{calling(0)}, drop, nil},
		"it is early": {altershield.CheckBatch, false, batches{calling(time.Second)}, keep, nil},
		"it is early by almost all that a call can take": {altershield.CheckBatch, false, batches{calling(19 * time.Second)}, keep, nil},
		"no start can still be answered":                 {altershield.CheckBatch, false, batches{calling(21 * time.Second)}, drop, nil},
		"a start is answered, with another node":         {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("m", 0))}, drop, nil},
		"a finish is unanswered, which has no new node":  {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("m", 0), ft.Intent(v1alpha1.StagePost, 0))}, drop, nil},
		"there is no batch":                              {altershield.CheckBatch, false, nil, drop, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input{check: tc.check, node: "n", workload: ft.NewRelease(), now: ft.Now(), callDeadline: 15 * time.Second}
			if tc.order != nil {
				tc.order(in.workload.Status.Order)
			}
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
