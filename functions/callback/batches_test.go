package callback

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestTheCacheHasOnlyTheNodesOfBatchesThatHaveNotEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		status v1alpha1.ChangePodStatus
		nodes  int
	}{
		"not started": {v1alpha1.ChangePodStatus{}, 0},
		"started":     {v1alpha1.ChangePodStatus{ChangePodID: "n"}, 1},
		"started twice": {v1alpha1.ChangePodStatus{ChangePodID: "n", Submissions: []v1alpha1.Submission{
			{Stage: v1alpha1.StagePre, EarlierNodes: []string{"former"}},
		}}, 2},
		"ended": {v1alpha1.ChangePodStatus{ChangePodID: "n", Phase: v1alpha1.BatchExecuteDone}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			trimmed, err := trim(&v1alpha1.ChangePod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b", UID: "u", OwnerReferences: []metav1.OwnerReference{{UID: "release"}},
					Annotations: map[string]string{v1alpha1.TraceparentAnnotation: "t", "other": "large"}},
				Spec:   v1alpha1.ChangePodSpec{PodInfos: make([]v1alpha1.PodSummary, 1000)},
				Status: tc.status,
			})
			if err != nil {
				t.Fatal(err)
			}
			batch := trimmed.(*v1alpha1.ChangePod)
			nodes, err := nodesOf(batch)
			if err != nil || len(nodes) != tc.nodes || len(batch.Spec.PodInfos) != 0 || batch.UID != "u" {
				t.Errorf("nodes %v, %v: %+v", nodes, err, batch)
			}
			if n := len(batch.Annotations); tc.nodes > 0 && (n != 1 || batch.Annotations[v1alpha1.TraceparentAnnotation] != "t") {
				t.Errorf("annotations %v", batch.Annotations)
			}
		})
	}
}
