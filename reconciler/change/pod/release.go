package pod

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// onRelease returns a handler that calls do for an object with a release after the
// baseline in an opted-in namespace, when the object is new or its release changed. Its
// pods may have been cached before.
func onRelease(optedIn func(any) bool, do func(metav1.Object)) cache.ResourceEventHandler {
	handle := func(obj any) {
		if o, ok := afterBaseline(obj); ok && optedIn(obj) && mayOwnPods(obj) {
			do(o)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: handle,
		UpdateFunc: func(before, after any) {
			if releaseOf(before) != releaseOf(after) {
				handle(after)
			}
		},
	}
}

// afterBaseline reports whether an object has a release that is not the baseline.
func afterBaseline(obj any) (metav1.Object, bool) {
	o, ok := obj.(metav1.Object)
	return o, ok && !releaseOf(obj).IsBaseline()
}

func releaseOf(obj any) v1alpha1.Release {
	o, ok := obj.(metav1.Object)
	if !ok {
		return v1alpha1.Release{}
	}
	release, _ := v1alpha1.ReleaseOf(o.GetAnnotations())
	return release
}

// mayOwnPods reports whether an object can own pods of a release. Most ReplicaSets of a
// Deployment are old and have none.
func mayOwnPods(obj any) bool {
	switch o := obj.(type) {
	case *appsv1.ReplicaSet:
		return ptr.Deref(o.Spec.Replicas, 1) > 0
	case *workload.Workload:
		return o.Kind.Revisions == workload.ControllerRevisions
	default:
		return true
	}
}
