package savedtemplate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// The annotations with which controllers number ReplicaSets.
const (
	// RevisionAnnotation is that of Deployments.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// RolloutRevisionAnnotation is that of the Rollouts of Argo Rollouts.
	RolloutRevisionAnnotation = "rollout.argoproj.io/revision"
)

// hashLabels are the labels that controllers add to the template of a ReplicaSet: that of Deployments and that of
// Rollouts.
var hashLabels = []string{appsv1.DefaultDeploymentUniqueLabelKey, rolloutHashLabel}

// RevisionOf returns the revision number of a ReplicaSet; the latest has the
// highest. It returns 0 if the ReplicaSet has none yet.
func RevisionOf(set metav1.Object) int64 {
	annotation := RevisionAnnotation
	// A Rollout that was copied from a Deployment has the annotation of Deployments, too, and its ReplicaSets inherit it.
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil && owner.Kind != workload.Deployment.Kind {
		annotation = RolloutRevisionAnnotation
	}
	n, err := strconv.ParseInt(set.GetAnnotations()[annotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// VersionOf returns the version of the template of a ReplicaSet of a Deployment. It is empty for one of a custom kind: its
// version would be another one, because the API server adds default values to it, and not to the workload.
func VersionOf(set *appsv1.ReplicaSet) string {
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil || !workload.Deployment.Is(owner.APIVersion, owner.Kind) {
		return ""
	}
	template := set.Spec.Template
	template.Labels = maps.Clone(template.Labels)
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	version, err := workload.Version(workload.Deployment, &template)
	if err != nil {
		return ""
	}
	return version
}

// ReleaseOf returns the release of a ReplicaSet; all are the ReplicaSets of its workload, and versionOf returns the
// version of the template of one. A template that was applied while the webhook was unavailable gives its ReplicaSet
// the release of the previous template, until the webhook adds the new one. If the annotations
// of several ReplicaSets have the same release, it belongs to the one whose template has its version, and
// to the oldest if this is true for none: the number of the previous template is higher if it was applied again.
// None has it for a custom kind, and if the API server has other default values than at the admission.
func ReleaseOf(set *appsv1.ReplicaSet, all []*appsv1.ReplicaSet, versionOf func(*appsv1.ReplicaSet) string) (v1alpha1.Release, bool) {
	release, known := v1alpha1.ReleaseOf(set.Annotations)
	if !known {
		return v1alpha1.Release{}, false
	}
	for _, o := range all {
		if of, known := v1alpha1.ReleaseOf(o.Annotations); o == set || !known || of != release {
			continue
		}
		has, otherHas := versionOf(set) == release.Version, versionOf(o) == release.Version
		if otherHas && !has || otherHas == has && RevisionOf(o) < RevisionOf(set) {
			return v1alpha1.Release{}, false
		}
	}
	return release, true
}

// Template is a pod template in a ReplicaSet or ControllerRevision of the
// workload's controller.
type Template struct {
	// Name and UID are those of the ReplicaSet or ControllerRevision.
	Name string
	UID  types.UID
	// Revision is the revision number; the latest has the highest.
	Revision int64
	// Version is the version of Raw, or the one in the release annotations of the ReplicaSet of a custom kind.
	Version string
	// Recorded is the version in the release annotations; empty if there are none. It is that of another template
	// if the webhook missed this one.
	Recorded string
	Raw      json.RawMessage
}

// FromReplicaSets returns the templates of a workload's ReplicaSets, without
// what the workload's controller adds.
//
// The ReplicaSet of a custom kind has the version in its annotations, which its controller copies from the workload. The
// version of its template is another one: the API server adds default values to a ReplicaSet, and not to a custom kind.
func FromReplicaSets(sets []unstructured.Unstructured, w *workload.Workload) ([]Template, error) {
	var out []Template
	for i := range sets {
		set := &sets[i]
		if !metav1.IsControlledBy(set, w) {
			continue
		}
		content, _, err := unstructured.NestedMap(set.Object, "spec", "template")
		if err != nil {
			return nil, fmt.Errorf("read the template of ReplicaSet %s: %w", set.GetName(), err)
		}
		for _, label := range hashLabels {
			unstructured.RemoveNestedField(content, "metadata", "labels", label)
		}
		removeInjected(set, content)
		t, err := templateOf(set, RevisionOf(set), content, w.Kind)
		if err != nil {
			return nil, err
		}
		if t.Recorded != "" && w.Kind.GroupKind() != workload.Deployment.GroupKind() {
			t.Version = t.Recorded
		}
		out = append(out, t)
	}
	return out, nil
}

// FromControllerRevisions returns the templates of a workload's own
// ControllerRevisions, which contain patches.
func FromControllerRevisions(revisions []appsv1.ControllerRevision, w *workload.Workload) ([]Template, error) {
	var out []Template
	for i := range revisions {
		r := &revisions[i]
		if !metav1.IsControlledBy(r, w) {
			continue
		}
		var patch struct {
			Spec struct {
				Template map[string]any `json:"template"`
			} `json:"spec"`
		}
		if err := kubejson.Unmarshal(r.Data.Raw, &patch); err != nil { // keeps large numbers
			return nil, fmt.Errorf("read ControllerRevision %s: %w", r.Name, err)
		}
		delete(patch.Spec.Template, "$patch")
		t, err := templateOf(r, r.Revision, patch.Spec.Template, w.Kind)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func templateOf(o metav1.Object, number int64, content map[string]any, kind workload.Kind) (Template, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return Template{}, fmt.Errorf("read the template of %s: %w", o.GetName(), err)
	}
	var read corev1.PodTemplateSpec
	if err := json.Unmarshal(raw, &read); err != nil {
		return Template{}, fmt.Errorf("read the template of %s: %w", o.GetName(), err)
	}
	version, err := workload.Version(kind, &read)
	if err != nil {
		return Template{}, err
	}
	release, _ := v1alpha1.ReleaseOf(o.GetAnnotations())
	return Template{Name: o.GetName(), UID: o.GetUID(), Revision: number, Version: version, Recorded: release.Version, Raw: raw}, nil
}

// CountReleased returns how many of the ControllerRevisions of a workload have the release of a version, and whether
// the latest one has. They differ in their templates, so with several the webhook missed a template. If the latest one has
// not, the controller has used that of a former template again. One that is older than the opt-in has no release
// annotations: its version is computed from its template. The API server sets no defaults in it.
func CountReleased(templates []Template, version string) (n int, latest bool) {
	last := int64(0)
	for _, t := range templates {
		is := cmp.Or(t.Recorded, t.Version) == version
		if is {
			n++
		}
		if t.Revision > last {
			last, latest = t.Revision, is
		}
	}
	return n, latest
}

// Latest returns the template of a version with the highest revision number.
func Latest(templates []Template, version string) (Template, bool) {
	var found Template
	ok := false
	for _, t := range templates {
		if t.Version == version && (!ok || t.Revision > found.Revision) {
			found, ok = t, true
		}
	}
	return found, ok
}
