package callback

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// orderStartedAgain is an order with another node, whose start was repeated; node n is
// an earlier one if it is known.
func orderStartedAgain(known bool) func(*v1alpha1.Order) {
	return func(o *v1alpha1.Order) {
		at := metav1.NewMicroTime(ft.Now())
		s := v1alpha1.Submission{Stage: v1alpha1.StagePre, IntentTime: at, Attempts: 2}
		o.NodeID = "m"
		if known {
			s.AnsweredTime, s.EarlierNodes = &at, []string{"n"}
		}
		o.Submissions = []v1alpha1.Submission{s}
	}
}

func TestDecide(t *testing.T) {
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
		want    action
		order   func(*v1alpha1.Order)
	}{
		"known node":                                   {altershield.CheckBatch, false, batches{started}, deliver, nil},
		"known node, another start in flight":          {altershield.CheckBatch, false, batches{calling(0), started}, deliver, nil},
		"unknown type of check":                        {"CHANGE_NEXT", false, batches{started}, deliver, nil},
		"unknown order, check of batch":                {altershield.CheckBatch, true, nil, drop, nil},
		"unknown order, check of order":                {altershield.CheckOrder, true, nil, drop, nil},
		"check of order, node of a batch":              {altershield.CheckOrder, false, batches{started}, deliver, nil},
		"check of order, node of the order":            {altershield.CheckOrder, false, nil, deliverOrder, orderNode("n")},
		"CloudEvent, node of the order":                {"", false, batches{calling(0)}, deliverOrder, orderNode("n")},
		"check of order, order has another node":       {altershield.CheckOrder, false, batches{calling(0)}, drop, orderNode("m")},
		"check of order, its start in flight":          {altershield.CheckOrder, false, nil, wait, orderCalling(time.Second)},
		"CloudEvent, start of the order in flight":     {"", false, nil, wait, orderCalling(time.Second)},
		"check of batch, start of the order in flight": {altershield.CheckBatch, false, nil, drop, orderCalling(time.Second)},
		"check of order, its start expired":            {altershield.CheckOrder, false, nil, drop, orderCalling(21 * time.Second)},
		"check of order, start of a batch in flight":   {altershield.CheckOrder, false, batches{calling(0)}, drop, nil},
		"check of batch, start in flight":              {altershield.CheckBatch, false, batches{calling(time.Second)}, wait, nil},
		"check of batch, start about to expire":        {altershield.CheckBatch, false, batches{calling(19 * time.Second)}, wait, nil},
		"check of batch, start expired":                {altershield.CheckBatch, false, batches{calling(21 * time.Second)}, drop, nil},
		"check of batch, node of an earlier start":     {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("n", 0), ft.StartedAgain("n", "m"))}, deliver, nil},
		"check of batch, its start is repeated":        {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("m", 0), ft.StartedAgain("m", ""))}, wait, nil},
		"check of order, node of an earlier start":     {altershield.CheckOrder, false, nil, deliverOrder, orderStartedAgain(true)},
		"check of order, its start is repeated":        {altershield.CheckOrder, false, nil, wait, orderStartedAgain(false)},
		"check of batch, batch has another node":       {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("m", 0))}, drop, nil},
		"check of batch, finish in flight":             {altershield.CheckBatch, false, batches{ft.NewBatch(1, a, ft.Started("m", 0), ft.Intent(v1alpha1.StagePost, 0))}, drop, nil},
		"check of batch, no batch":                     {altershield.CheckBatch, false, nil, drop, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input{check: tc.check, node: "n", release: ft.NewRelease(), now: ft.Now(), callTimeout: 15 * time.Second}
			if tc.order != nil {
				tc.order(in.release.Status.Order)
			}
			if tc.unknown {
				in.release = nil
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
