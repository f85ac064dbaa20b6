package podpermission

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// InjectionProblem says why a pod lacks what the webhook should have injected.
type InjectionProblem struct {
	// Reason is empty if there is no problem.
	Reason, Message string
}

// FindInjectionProblem checks a pod. value is its effective annotation; enabled is
// true if its namespace has the label.
func FindInjectionProblem(p *corev1.Pod, value string, enabled bool) InjectionProblem {
	sets, err := podmeta.ParseSets(value)
	switch {
	case err == nil && len(sets) == 0, v1alpha1.ExcludedNamespace(p.Namespace):
		return InjectionProblem{}
	case podmeta.InitContainer(p) != nil && p.Labels[podmeta.Label] == podmeta.LabelRequired:
		return InjectionProblem{}
	case !enabled:
		return InjectionProblem{podmeta.ReasonNamespaceNotEnabled, "the pod runs without permission sets " + value + ", because its namespace does not have the label " +
			podmeta.Label + "=" + podmeta.LabelEnabled + "; ask the owner of the namespace to add it"}
	}
	return InjectionProblem{podmeta.ReasonPermissionNotInjected, "the pod did not wait for permission sets " + value +
		", because it was created without the init container; delete the pod so that its replacement waits"}
}
