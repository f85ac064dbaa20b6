package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// exemptNamespaces are namespaces that the label cannot opt in: what the cluster,
// Knative and Breakwater itself need to come up again. The webhooks'
// namespaceSelector leaves out the same.
var exemptNamespaces = []string{
	"kube-system", "kube-public", "kube-node-lease",
	"knative-serving", "knative-eventing",
	SystemNamespace,
}

// OptedIn says whether workloads of the namespace are guarded.
func OptedIn(namespace *corev1.Namespace) bool {
	return namespace.Labels[NamespaceLabel] == NamespaceEnabled && !ExemptNamespace(namespace.Name)
}

// ExemptNamespace says whether the label means nothing on a namespace of that name.
func ExemptNamespace(name string) bool { return slices.Contains(exemptNamespaces, name) }
