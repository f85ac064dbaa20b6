package releasefinder

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

var _ cache.TransformFunc = Trim

// ComputedKey is an annotation that exists only in the cache: the version of
// the template in the ControllerRevision, or in the ReplicaSet of a Deployment.
const ComputedKey = "breakwater.dev/computed-version"

// SetComputed adds the version of its template to a ReplicaSet of a Deployment that has a release, before the template
// is trimmed, and removes it from others. A ReplicaSet whose template was trimmed stays unchanged; a whole template has
// labels.
func SetComputed(rs *appsv1.ReplicaSet) {
	if len(rs.Spec.Template.Labels) == 0 {
		return
	}
	delete(rs.Annotations, ComputedKey)
	if _, known := v1alpha1.ReleaseOf(rs.Annotations); !known {
		return
	}
	if version := savedtemplate.VersionOf(rs); version != "" {
		rs.Annotations[ComputedKey] = version
	}
}

// Trim reduces a ControllerRevision, before it is cached, to the fields that
// identify its release. Other objects are not changed.
func Trim(obj any) (any, error) {
	r, ok := obj.(*appsv1.ControllerRevision)
	if !ok {
		return obj, nil
	}
	annotations := map[string]string{}
	for _, key := range []string{v1alpha1.VersionKey, v1alpha1.AttemptAnnotation, ComputedKey} {
		if value, ok := r.Annotations[key]; ok {
			annotations[key] = value
		}
	}
	if version := computed(r); version != "" {
		annotations[ComputedKey] = version
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name, Namespace: r.Namespace, UID: r.UID, ResourceVersion: r.ResourceVersion,
			Annotations: annotations, OwnerReferences: r.OwnerReferences,
			CreationTimestamp: r.CreationTimestamp, DeletionTimestamp: r.DeletionTimestamp,
		},
		Revision: r.Revision,
	}, nil
}

// computed returns the version of the template in a workload's
// ControllerRevision; empty if it has none. StatefulSets, DaemonSets and
// similar kinds store a patch of spec.template.
func computed(r *appsv1.ControllerRevision) string {
	owner := metav1.GetControllerOfNoCopy(r)
	if owner == nil {
		return ""
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return ""
	}
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(r.Data.Raw, &data) != nil || data.Spec.Template == nil {
		return ""
	}
	version, err := workload.Version(workload.Kind{GroupVersionKind: gv.WithKind(owner.Kind)}, data.Spec.Template)
	if err != nil {
		return ""
	}
	return version
}
