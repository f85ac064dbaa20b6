// Package namespaceoptin filters objects of opted-in namespaces for
// controllers, and reports when a namespace is opted in. It reads caches only.
package namespaceoptin

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// Filter returns a filter for objects of opted-in namespaces. It rejects an
// object whose namespace is not cached yet, so callers must also use Handler.
func Filter(namespaces corelisters.NamespaceLister) func(any) bool {
	return func(obj any) bool {
		o, ok := wiring.Object[metav1.Object](obj)
		if !ok {
			return false
		}
		ns, err := namespaces.Get(o.GetNamespace())
		return err == nil && v1alpha1.OptedIn(ns)
	}
}

// Handler returns a handler for namespaces. It calls do with the name of each namespace that
// is, or becomes, opted in.
func Handler(do func(namespace string)) cache.ResourceEventHandler {
	handle := func(obj any) {
		if ns, ok := obj.(*corev1.Namespace); ok && v1alpha1.OptedIn(ns) {
			do(ns.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: handle,
		UpdateFunc: func(before, after any) {
			if was, ok := before.(*corev1.Namespace); ok && !v1alpha1.OptedIn(was) {
				handle(after)
			}
		},
	}
}

// ChangeHandler is Handler that also calls do with the name of each namespace that is opted out or deleted.
func ChangeHandler(do func(namespace string)) cache.ResourceEventHandler {
	handle := func(obj any) {
		if ns, ok := wiring.Object[*corev1.Namespace](obj); ok {
			do(ns.Name)
		}
	}
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			ns, ok := wiring.Object[*corev1.Namespace](obj)
			return ok && v1alpha1.OptedIn(ns)
		},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: handle, DeleteFunc: handle},
	}
}
