package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// excludedNamespaces are namespaces that cannot opt in, because the cluster, Knative and
// Breakwater need them to start. The namespaceSelector of the webhooks excludes the
// same namespaces.
var excludedNamespaces = []string{
	"kube-system", "kube-public", "kube-node-lease",
	"knative-serving", "knative-eventing",
	SystemNamespace,
}

// OptedIn reports whether the namespace opted in.
func OptedIn(namespace *corev1.Namespace) bool {
	return namespace.Labels[NamespaceLabel] == NamespaceEnabled && !ExcludedNamespace(namespace.Name)
}

// ExcludedNamespace reports whether a namespace of that name cannot opt in. Budgets, flow controls and
// permissions do not apply there; the protection from deletion does.
func ExcludedNamespace(name string) bool { return slices.Contains(excludedNamespaces, name) }
