package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/kmeta"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// onChange calls enqueue for an update in which differs holds. A resync, which
// repeats an object with the resourceVersion that it had, always counts.
func onChange[T metav1.Object](differs func(before, after T) bool, enqueue func(any)) func(any, any) {
	return func(before, after any) {
		b, ok := before.(T)
		a, okAfter := after.(T)
		if !ok || !okAfter || a.GetResourceVersion() == b.GetResourceVersion() || differs(b, a) {
			enqueue(after)
		}
	}
}

// differs leaves out updates of the status, of which a rollout makes many.
func differs(before, after *appsv1.Deployment) bool {
	return before.Generation != after.Generation || before.UID != after.UID ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations)
}

// phaseDiffers leaves out all that a ChangeWorkload learns on its way.
func phaseDiffers(before, after *v1alpha1.ChangeWorkload) bool {
	return before.Status.Phase != after.Status.Phase
}

// versionDiffers leaves out everything but what the Deployment controller
// copies for us.
func versionDiffers(before, after *appsv1.ReplicaSet) bool {
	return before.Annotations[v1alpha1.VersionKey] != after.Annotations[v1alpha1.VersionKey]
}

// ofDeployment tells objects that a Deployment controls, deleted ones too.
func ofDeployment(obj any) bool {
	o, err := kmeta.DeletionHandlingAccessor(obj)
	if err != nil {
		return false
	}
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == kind && owner.APIVersion == appsv1.SchemeGroupVersion.String()
}
