package changeworkload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// maxListedImages is how many images the message of condition Drifted names.
const maxListedImages = 3

// maxImageLength limits the images in a message, in bytes. Kubernetes does not limit them.
const maxImageLength = 200

// DriftedImage is an image that was changed in a pod, or in the template of a ReplicaSet, and
// differs from the workload's template.
type DriftedImage struct {
	// Object is the kind and the name of the pod or ReplicaSet.
	Object    string
	Container string
	// Image is the image of the object, Template that of the workload's template.
	Image, Template string
}

// driftOf returns the drifted images of the current release. The cached objects have only those
// containers whose image was changed after the creation (pod.Trim): a webhook may give a new pod
// other images than the template's. A container that the template does not have was injected.
//
// An image that was changed to the template's is no drift: it was changed back, or the workload's
// controller updates pods in place.
func driftOf(template *corev1.PodSpec, sets []*appsv1.ReplicaSet, pods []*corev1.Pod) []DriftedImage {
	var all []DriftedImage
	add := func(object string, changed *corev1.PodSpec) {
		all = append(all, differing(object, changed.Containers, template.Containers)...)
		all = append(all, differing(object, changed.InitContainers, template.InitContainers)...)
	}
	for _, rs := range sets {
		if ptr.Deref(rs.Spec.Replicas, 1) > 0 {
			add("ReplicaSet "+rs.Name, &rs.Spec.Template.Spec)
		}
	}
	for _, p := range pods {
		if workload.PodActive(p) {
			add("pod "+p.Name, &p.Spec)
		}
	}
	return all
}

func differing(object string, changed, template []corev1.Container) []DriftedImage {
	var all []DriftedImage
	for i := range changed {
		c := &changed[i]
		at := slices.IndexFunc(template, func(t corev1.Container) bool { return t.Name == c.Name })
		if at >= 0 && template[at].Image != "" && template[at].Image != c.Image {
			all = append(all, DriftedImage{Object: object, Container: c.Name, Image: c.Image, Template: template[at].Image})
		}
	}
	return all
}

// markDrifted sets condition Drifted of the workload's current release, or removes it.
func markDrifted(in Input, m apis.ConditionManager) {
	if isCurrent(in) && len(in.Drift) > 0 {
		setInfo(m, v1alpha1.ReleaseDrifted, corev1.ConditionTrue, v1alpha1.ReasonImagesChanged, driftMessage(in.Drift, in.ChangeWorkload.Spec.WorkloadRef))
	} else {
		_ = m.ClearCondition(v1alpha1.ReleaseDrifted) // fails for terminal conditions only
	}
}

// driftMessage names some of the images, and the ways out.
func driftMessage(all []DriftedImage, of v1alpha1.WorkloadRef) string {
	var listed []string
	for _, d := range all[:min(len(all), maxListedImages)] {
		listed = append(listed, fmt.Sprintf("container %s of %s has image %s instead of %s",
			d.Container, d.Object, text.Truncate(d.Image, maxImageLength), text.Truncate(d.Template, maxImageLength)))
	}
	if more := len(all) - len(listed); more > 0 {
		listed = append(listed, fmt.Sprintf("and %d more", more))
	}
	out := "delete the pods"
	if slices.ContainsFunc(all, func(d DriftedImage) bool { return strings.HasPrefix(d.Object, "ReplicaSet ") }) {
		out = "change the ReplicaSet back and delete the pods that were created or changed meanwhile"
	}
	return fmt.Sprintf("images were changed without a release: %s. Ways out: %s; or release the images by a change of %s %s",
		strings.Join(listed, "; "), out, of.Kind, of.Name)
}

// recordDrift records a Kubernetes Event when images of a release begin to drift.
func recordDrift(ctx context.Context, old, next *v1alpha1.ChangeWorkload, w *workload.Workload) {
	if c := next.Status.GetCondition(v1alpha1.ReleaseDrifted); c.IsTrue() && !old.Status.GetCondition(v1alpha1.ReleaseDrifted).IsTrue() {
		controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, c.Reason, "ChangeWorkload %s: %s", next.Name, c.Message)
	}
}
