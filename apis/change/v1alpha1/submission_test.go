package v1alpha1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheNodesOfEarlierStartsAreKnown(t *testing.T) {
	earlier := []Submission{{Stage: StagePre, EarlierNodes: []string{"n1", "n2"}}, {Stage: StagePost}}
	for name, tc := range map[string]struct {
		current     string
		submissions []Submission
		want        []string
	}{
		"not started":     {"", nil, nil},
		"started":         {"n1", []Submission{{Stage: StagePre}}, []string{"n1"}},
		"no submission":   {"n1", nil, []string{"n1"}},
		"started again":   {"n3", earlier, []string{"n3", "n1", "n2"}},
		"no current node": {"", earlier, nil},
	} {
		t.Run(name, func(t *testing.T) {
			batch := ChangePodStatus{ChangePodID: tc.current, Submissions: tc.submissions}
			order := &Order{NodeID: tc.current, Submissions: tc.submissions}
			if diff := cmp.Diff(tc.want, batch.Nodes()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.want, order.Nodes()); diff != "" {
				t.Error(diff)
			}
			for _, node := range tc.want {
				if !batch.HasNode(node) || !order.HasNode(node) {
					t.Errorf("%s is unknown", node)
				}
			}
			if batch.HasNode("") || batch.HasNode("x") || order.HasNode("") || (*Order)(nil).HasNode("x") {
				t.Error("an unknown node is known")
			}
		})
	}
}

func TestTheTimeoutOfAStageCountsFromTheFirstIntent(t *testing.T) {
	first, second := metav1.NewMicroTime(time.Unix(1, 0)), metav1.NewMicroTime(time.Unix(2, 0))
	for name, tc := range map[string]struct {
		s    *Submission
		want time.Time
	}{
		"no call":      {nil, time.Time{}},
		"one attempt":  {&Submission{IntentTime: first}, first.Time},
		"two attempts": {&Submission{IntentTime: second, FirstIntentTime: &first}, first.Time},
	} {
		if got := tc.s.FirstIntent(); !got.Equal(tc.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
