package pod

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// replicaSetKind is the kind of owner that a pod's release is read from.
var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// facts gathers what Decide wants, from caches only. It is also the filter
// before the queue: of all pods of a cluster, only those that are to be
// labelled come into it.
type facts struct {
	// guarded tells objects of guarded namespaces.
	guarded     func(any) bool
	replicaSets appslisters.ReplicaSetLister
}

// of returns the input about a pod, and its ReplicaSet if the release is known.
func (f facts) of(p *corev1.Pod) (Input, *appsv1.ReplicaSet) {
	in := Input{
		OptedIn:  f.guarded(p),
		Deleting: p.DeletionTimestamp != nil,
		Ready:    ready(p),
		Finished: p.Labels[v1alpha1.FinishedLabel] == v1alpha1.FinishedValue,
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != replicaSetKind.Kind || owner.APIVersion != replicaSetKind.GroupVersion().String() {
		return in, nil
	}
	// One that the cache has not seen yet brings its pods up again when it
	// comes: see NewController.
	rs, err := f.replicaSets.ReplicaSets(p.Namespace).Get(owner.Name)
	if err != nil || rs.UID != owner.UID {
		return in, nil
	}
	in.Release, in.Known = v1alpha1.ReleaseOf(rs.Annotations)
	return in, rs
}

// due says whether an object is a pod that is to be labelled.
func (f facts) due(obj any) bool {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return false
	}
	in, _ := f.of(p)
	return Decide(in).Finish
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
