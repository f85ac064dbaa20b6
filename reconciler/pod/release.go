package pod

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// onRelease returns a handler for ReplicaSets that calls do for one of a
// guarded namespace that carries a judged release and has pods, when the
// release is news.
func onRelease(guarded func(any) bool, do func(*appsv1.ReplicaSet)) cache.ResourceEventHandler {
	handle := func(rs *appsv1.ReplicaSet) {
		if _, ok := judged(rs); ok && ptr.Deref(rs.Spec.Replicas, 1) > 0 && guarded(rs) {
			do(rs)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if rs, ok := obj.(*appsv1.ReplicaSet); ok {
				handle(rs)
			}
		},
		UpdateFunc: func(before, after any) {
			was, okBefore := before.(*appsv1.ReplicaSet)
			is, ok := after.(*appsv1.ReplicaSet)
			if !ok {
				return
			}
			release, _ := judged(is)
			if known, _ := judged(was); !okBefore || known != release {
				handle(is)
			}
		},
	}
}

// judged returns the release that a ReplicaSet carries, if it is checked.
func judged(rs *appsv1.ReplicaSet) (v1alpha1.Release, bool) {
	if rs == nil {
		return v1alpha1.Release{}, false
	}
	release, known := v1alpha1.ReleaseOf(rs.Annotations)
	return release, known && release.Judged()
}
