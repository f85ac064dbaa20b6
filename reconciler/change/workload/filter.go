package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// onChange returns an update handler. It calls enqueue if differs is true, and for every
// resync, which repeats an object with an unchanged resourceVersion.
func onChange[T metav1.Object](differs func(before, after T) bool, enqueue func(any)) func(any, any) {
	return func(before, after any) {
		b, ok := before.(T)
		a, okAfter := after.(T)
		if !ok || !okAfter || a.GetResourceVersion() == b.GetResourceVersion() || differs(b, a) {
			enqueue(after)
		}
	}
}

// differs ignores status updates, which are frequent during a rollout, except one that shows that a paused or held
// workload has no ReplicaSet of its template.
func differs(before, after *workload.Workload) bool {
	return before.Generation != after.Generation || before.UID != after.UID ||
		before.StoppedBeforeReplicaSet() != after.StoppedBeforeReplicaSet() ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations)
}

// endDiffers ignores status changes while a release runs.
func endDiffers(before, after *v1alpha1.ChangeWorkload) bool {
	return before.Status.Phase != after.Status.Phase || settled(before) != settled(after)
}

// versionDiffers compares only the annotation that the Deployment controller
// copies.
func versionDiffers(before, after *appsv1.ReplicaSet) bool {
	return before.Annotations[v1alpha1.VersionKey] != after.Annotations[v1alpha1.VersionKey]
}

// keyOfController returns the key of the workload that controls an object,
// which may be deleted; false if the controller's kind is not watched.
func keyOfController(w *workloadinformer.Watch, obj any) (types.NamespacedName, bool) {
	o, ok := wiring.Object[metav1.Object](obj)
	if !ok {
		return types.NamespacedName{}, false
	}
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return types.NamespacedName{}, false
	}
	kind, ok := w.Kind(owner.APIVersion, owner.Kind)
	return workloadinformer.QueueKey(kind, o.GetNamespace(), owner.Name), ok
}
