// Package requiredsets finds out which permission sets a pod needs: what stands on the
// pod counts before what stands on a workload above it, and that before its
// namespace.
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

// Owners finds an annotation above an object.
type Owners interface {
	Annotation(ctx context.Context, namespace string, refs []metav1.OwnerReference, key string) (string, bool, error)
}

// Finder finds out which sets pods need.
type Resolver struct {
	Owners     Owners
	Namespaces corelisters.NamespaceLister
	// Live is read for a namespace that is too new for Namespaces, or enabled too
	// short a time ago.
	Client corev1client.NamespaceInterface
}

// Source says where the annotation stands that counts.
type Source string

// The sources, the nearest first.
const (
	FromPod       Source = "pod"
	FromOwner     Source = "workload"
	FromNamespace Source = "namespace"
	FromNone      Source = ""
)

// Value returns the annotation that counts for a pod of a namespace that is
// enabled, and where it stands.
func (w Resolver) Resolve(ctx context.Context, namespace string, p *corev1.Pod) (string, Source, error) {
	if value, ok := p.Annotations[podmeta.SetAnnotation]; ok {
		return value, FromPod, nil
	}
	value, ok, err := w.Owners.Annotation(ctx, namespace, p.OwnerReferences, podmeta.SetAnnotation)
	if err != nil {
		return "", FromNone, fmt.Errorf("find out which permission sets the pod needs: %w", err)
	}
	if ok {
		return value, FromOwner, nil
	}
	n, err := w.Namespaces.Get(namespace)
	if apierrs.IsNotFound(err) || (err == nil && n.Labels[podmeta.Label] != podmeta.LabelEnabled) {
		n, err = w.Client.Get(ctx, namespace, metav1.GetOptions{})
	}
	if err != nil {
		return "", FromNone, fmt.Errorf("find out which permission sets the pod needs: %w", err)
	}
	if value, ok := n.Annotations[podmeta.SetAnnotation]; ok {
		return value, FromNamespace, nil
	}
	return "", FromNone, nil
}
