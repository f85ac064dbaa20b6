package cli

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

// explainOther explains an object that does not belong to a release. It returns false if the object
// may belong to one.
func explainOther(t target) (e diagnosis.Explanation, found bool, err error) {
	switch t.object.GetKind() {
	case "Pod":
		pod, err := convert[corev1.Pod](t)
		return diagnosis.ExplainPod(pod), true, err
	case "PodUnavailableBudget":
		budget, err := convert[v1alpha1.PodUnavailableBudget](t)
		return diagnosis.ExplainBudget(budget), true, err
	case "PodDeletionFlowControl":
		control, err := convert[v1alpha1.PodDeletionFlowControl](t)
		return diagnosis.ExplainFlowControl(control), true, err
	default:
		return e, false, nil
	}
}

// convert returns the object of a target as a Go type.
func convert[T any](t target) (*T, error) {
	var o T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.object.Object, &o); err != nil {
		return &o, fmt.Errorf("read %s: %w", t, err)
	}
	return &o, nil
}
