package selfcheck

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// NamespacesToGuard lists the namespaces with the labels, except those that
// guards never match and those that are terminating.
func NamespacesToGuard(namespaces corelisters.NamespaceLister, labeled labels.Set) ([]*corev1.Namespace, error) {
	all, err := namespaces.List(labeled.AsSelector())
	return slices.DeleteFunc(all, func(n *corev1.Namespace) bool {
		return n.DeletionTimestamp != nil || v1alpha1.ExcludedNamespace(n.Name)
	}), err
}
