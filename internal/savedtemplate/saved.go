// Package savedtemplate is what Breakwater keeps of a workload's versions that
// succeeded: their pod templates, a ControllerRevision each.
//
// The built-in controllers of StatefulSets and DaemonSets keep ControllerRevisions
// too. They adopt what their workload's selector matches, and a DaemonSet's
// controller disowns what it controls and does not match. So ours have labels
// of their own, and the workload is their owner but not their controller: the
// garbage collector takes them with it, and nobody counts them.
package savedtemplate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// WorkloadUIDLabel marks what is kept; its value is the workload's UID.
const WorkloadUIDLabel = "app.ops.cloud.alipay.com/history-of"

// Saved is the template of a version that succeeded.
type Saved struct {
	// Name is the ControllerRevision's.
	Name string
	// UID and ResourceVersion are the ControllerRevision's.
	UID             types.UID
	ResourceVersion string
	// Release is the version, and the latest attempt at which it succeeded.
	Release v1alpha1.Release
	// Template is the pod template as the API server had it, with fields that
	// our types do not know.
	Template json.RawMessage
}

// data is what a ControllerRevision holds: the shape that those of the built-in
// controllers have.
type data struct {
	Spec struct {
		Template json.RawMessage `json:"template"`
	} `json:"spec"`
}

// Build returns the ControllerRevision that keeps a template. w must be at the
// release.
func Build(w *workload.Workload, release v1alpha1.Release, template json.RawMessage) (*appsv1.ControllerRevision, error) {
	var d data
	d.Spec.Template = template
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("keep a pod template: %w", err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:        Name(w.Name, release.Version),
			Namespace:   w.Namespace,
			Labels:      labelsOf(w.UID),
			Annotations: annotationsOf(release),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: w.Kind.GroupVersion().String(), Kind: w.Kind.Kind, Name: w.Name, UID: w.UID,
			}},
		},
		Data:     runtime.RawExtension{Raw: raw},
		Revision: release.Attempt,
	}, nil
}

// Name is the name of the ControllerRevision that keeps a version. The version
// tells workloads of one name and another kind apart.
func Name(workloadName, version string) string {
	return v1alpha1.ChangeWorkloadName(workloadName, version)
}

// Selector selects what is kept of a workload.
func Selector(uid types.UID) labels.Selector { return labels.SelectorFromSet(labelsOf(uid)) }

// SelectorMatches says whether a workload's own selector would match what is kept of
// it. Only one of nothing but exclusions can.
func SelectorMatches(selector *metav1.LabelSelector, uid types.UID) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(labelsOf(uid)))
}

// SuccessPatch returns the merge patch that says that a kept version succeeded once
// more. It is refused when the object has become another.
func SuccessPatch(k Saved, release v1alpha1.Release) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": k.UID, "resourceVersion": k.ResourceVersion, "annotations": annotationsOf(release),
		},
		"revision": release.Attempt,
	})
}

// Read reads a ControllerRevision; false when it keeps no version of the workload.
func Read(r *appsv1.ControllerRevision, uid types.UID) (Saved, bool) {
	var d data
	release, known := v1alpha1.ReleaseOf(r.Annotations)
	owned := v1alpha1.OwnedBy(r, uid)
	if !known || !owned || r.Labels[WorkloadUIDLabel] != string(uid) || r.DeletionTimestamp != nil ||
		json.Unmarshal(r.Data.Raw, &d) != nil || len(d.Spec.Template) == 0 {
		return Saved{}, false
	}
	return Saved{Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, Release: release, Template: d.Spec.Template}, true
}

// ReadAll reads the ControllerRevisions that keep a version of the workload,
// the latest first.
func ReadAll(revisions []appsv1.ControllerRevision, uid types.UID) []Saved {
	var all []Saved
	for i := range revisions {
		if k, ok := Read(&revisions[i], uid); ok {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b Saved) int { return int(b.Release.Attempt - a.Release.Attempt) })
	return all
}

// PodTemplate is the template as our types know it.
func (k Saved) PodTemplate() (*corev1.PodTemplateSpec, error) {
	var t corev1.PodTemplateSpec
	if err := json.Unmarshal(k.Template, &t); err != nil {
		return nil, fmt.Errorf("read the template of %s: %w", k.Name, err)
	}
	return &t, nil
}

func labelsOf(uid types.UID) map[string]string {
	return map[string]string{WorkloadUIDLabel: string(uid)}
}

func annotationsOf(r v1alpha1.Release) map[string]string {
	return map[string]string{
		v1alpha1.VersionKey:        r.Version,
		v1alpha1.AttemptAnnotation: strconv.FormatInt(r.Attempt, 10),
	}
}
