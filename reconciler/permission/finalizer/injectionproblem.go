package finalizer

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// Defence says whether a pod is as the webhook would have left it: the second
// line of defence behind the webhook.
type InjectionProblem struct {
	// Reason is empty for a pod that is right.
	Reason, Message string
}

// Inspect looks at a pod that asks for sets: value is the annotation that
// counts, enabled says that its namespace is.
func FindInjectionProblem(p *corev1.Pod, value string, enabled bool) InjectionProblem {
	sets, err := podmeta.ParseSets(value)
	switch {
	case err == nil && len(sets) == 0, v1alpha1.ExemptNamespace(p.Namespace):
		return InjectionProblem{}
	case podmeta.InitContainer(p) != nil && p.Labels[podmeta.Label] == podmeta.LabelRequired:
		return InjectionProblem{}
	case !enabled:
		return InjectionProblem{podmeta.ReasonNamespaceNotEnabled, "permission sets " + value + " are asked for, but the namespace does not have the label " +
			podmeta.Label + "=" + podmeta.LabelEnabled + ": the pod runs without them"}
	}
	return InjectionProblem{podmeta.ReasonPermissionNotInjected, "the pod should have waited for permission sets " + value +
		", and was let in without the init container: delete it, so that its successor waits"}
}
