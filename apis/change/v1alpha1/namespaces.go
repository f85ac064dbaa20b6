package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// exemptNamespaces are namespaces that cannot opt in, because the cluster, Knative and
// Breakwater need them to start. The namespaceSelector of the webhooks excludes the
// same namespaces.
var exemptNamespaces = []string{
	"kube-system", "kube-public", "kube-node-lease",
	"knative-serving", "knative-eventing",
	SystemNamespace,
}

// OptedIn reports whether the namespace opted in.
func OptedIn(namespace *corev1.Namespace) bool {
	return namespace.Labels[NamespaceLabel] == NamespaceEnabled && !ExemptNamespace(namespace.Name)
}

// ExemptNamespace reports whether a namespace of that name cannot opt in.
func ExemptNamespace(name string) bool { return slices.Contains(exemptNamespaces, name) }
