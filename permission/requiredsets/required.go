// Package requiredsets determines which permission sets a pod needs. The
// annotation of the pod overrides that of its workload, which overrides that of
// its namespace.
package requiredsets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// Owners finds an annotation in the owner chain of an object.
type Owners interface {
	Annotation(ctx context.Context, namespace string, refs []metav1.OwnerReference, key string) (string, bool, error)
}

// Resolver determines which permission sets pods need.
type Resolver struct {
	Owners     Owners
	Namespaces corelisters.NamespaceLister
	// Client reads a namespace that is missing in Namespaces or not yet enabled there.
	Client corev1client.NamespaceInterface
}

// Source is the kind of object with the effective annotation.
type Source string

// The sources, in order of precedence.
const (
	FromPod       Source = "pod"
	FromOwner     Source = "workload"
	FromNamespace Source = "namespace"
	FromNone      Source = ""
)

// Resolve returns the effective annotation for a pod of an enabled namespace, and
// its source.
func (r Resolver) Resolve(ctx context.Context, namespace string, p *corev1.Pod) (string, Source, error) {
	if value, ok := p.Annotations[podmeta.PermissionSetAnnotation]; ok {
		return value, FromPod, nil
	}
	value, ok, err := r.Owners.Annotation(ctx, namespace, p.OwnerReferences, podmeta.PermissionSetAnnotation)
	if err != nil {
		return "", FromNone, fmt.Errorf("determine the permission sets of the pod: %w", err)
	}
	if ok {
		return value, FromOwner, nil
	}
	n, err := r.Namespaces.Get(namespace)
	if apierrs.IsNotFound(err) || (err == nil && n.Labels[podmeta.Label] != podmeta.LabelEnabled) {
		n, err = r.Client.Get(ctx, namespace, metav1.GetOptions{})
	}
	if err != nil {
		return "", FromNone, fmt.Errorf("determine the permission sets of the pod: %w", err)
	}
	if value, ok := n.Annotations[podmeta.PermissionSetAnnotation]; ok {
		return value, FromNamespace, nil
	}
	return "", FromNone, nil
}
