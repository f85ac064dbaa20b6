package releaseindex

import "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"

// keptFailures is how many failed pods stay in the cache: a refusal names a few.
const keptFailures = 4

// Trim is the transform of the informer of ChangeWorkloads: it leaves out the
// lists, which make most of an object and are not looked at here. The cache's
// objects must never be written back.
func Trim(obj any) (any, error) {
	c, ok := obj.(*v1alpha1.ChangeWorkload)
	if !ok {
		return obj, nil
	}
	c.ManagedFields = nil
	c.Annotations = nil
	s := &c.Status
	*s = v1alpha1.ChangeWorkloadStatus{
		Phase:                s.Phase,
		DefenseCheckFailPods: s.DefenseCheckFailPods[:min(len(s.DefenseCheckFailPods), keptFailures)],
	}
	return c, nil
}
