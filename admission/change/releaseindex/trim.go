package releaseindex

import (
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// maxFailedPods is the number of failed pods in the cache; a denial names some.
const maxFailedPods = 4

// Trim is the transform of the ChangeWorkload informer. Of the status it keeps the phase, the first
// failed pods, which denials name, and condition Judged without its message; it drops the annotations.
// So CountsAsFailed needs an object that was read from the API server. Never write cached objects back.
func Trim(obj any) (any, error) {
	c, ok := obj.(*v1alpha1.ChangeWorkload)
	if !ok {
		return obj, nil
	}
	c.ManagedFields = nil
	c.Annotations = nil
	s := &c.Status
	judged := s.GetCondition(v1alpha1.ReleaseJudged)
	*s = v1alpha1.ChangeWorkloadStatus{
		Phase:                s.Phase,
		DefenseCheckFailPods: s.DefenseCheckFailPods[:min(len(s.DefenseCheckFailPods), maxFailedPods)],
	}
	if judged != nil {
		s.Conditions = duckv1.Conditions{{Type: judged.Type, Status: judged.Status, Reason: judged.Reason}}
	}
	return c, nil
}
