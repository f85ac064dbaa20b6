package finalizer

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// Defence says whether a pod is as the webhook would have left it: the second
// line of defence behind the webhook.
type Defence struct {
	// Reason is empty for a pod that is right.
	Reason, Message string
}

// Inspect looks at a pod that asks for sets: value is the annotation that
// counts, enabled says that its namespace is.
func Inspect(p *corev1.Pod, value string, enabled bool) Defence {
	sets, err := podmeta.ParseSets(value)
	switch {
	case err == nil && len(sets) == 0, v1alpha1.NeverGuarded(p.Namespace):
		return Defence{}
	case podmeta.InitContainer(p) != nil && p.Labels[podmeta.Label] == podmeta.LabelRequired:
		return Defence{}
	case !enabled:
		return Defence{podmeta.ReasonNamespaceOff, "permission sets " + value + " are asked for, but the namespace does not have the label " +
			podmeta.Label + "=" + podmeta.LabelEnabled + ": the pod runs without them"}
	}
	return Defence{podmeta.ReasonNotInjected, "the pod should have waited for permission sets " + value +
		", and was let in without the init container: delete it, so that its successor waits"}
}
