// Package savedtemplate builds, reads and selects saved templates: the pod templates of
// versions that succeeded, each in a ControllerRevision, for rollbacks. The savedtemplates
// reconciler saves them. It also reads the templates in the ReplicaSets and
// ControllerRevisions of the workload's controller.
//
// The controllers of StatefulSets and DaemonSets use ControllerRevisions too. They
// adopt ControllerRevisions that the workload's selector matches; the DaemonSet
// controller also gives up ControllerRevisions that it controls but does not select. So
// saved templates have their own label, and the workload is their owner but not their
// controller: the garbage collector deletes them with it, and other controllers ignore
// them.
package savedtemplate

import (
	"encoding/json"
	"fmt"
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

// WorkloadUIDLabel marks a saved template; its value is the workload's UID.
const WorkloadUIDLabel = "app.ops.cloud.alipay.com/history-of"

// Saved is a saved template.
type Saved struct {
	// Name is the name of the ControllerRevision.
	Name string
	// UID and ResourceVersion are those of the ControllerRevision.
	UID             types.UID
	ResourceVersion string
	// Created is when the version succeeded for the first time.
	Created metav1.Time
	// Release is the version and the latest attempt that succeeded.
	Release v1alpha1.Release
	// Template is the pod template of the API server, including fields that
	// corev1.PodTemplateSpec does not have.
	Template json.RawMessage
}

// data is the content of a ControllerRevision, in the format of the built-in
// controllers.
type data struct {
	Spec struct {
		Template json.RawMessage `json:"template"`
	} `json:"spec"`
}

// Build returns the ControllerRevision of a saved template. The release must be
// the current release of w.
func Build(w *workload.Workload, release v1alpha1.Release, template json.RawMessage) (*appsv1.ControllerRevision, error) {
	var d data
	var err error
	if d.Spec.Template, err = w.Kind.SavedTemplate(template); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode saved template: %w", err)
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

// Name returns the name of the ControllerRevision of a version. Workloads of
// different kinds have different versions, so their names do not collide.
func Name(workloadName, version string) string {
	return v1alpha1.ChangeWorkloadName(workloadName, version)
}

// Selector selects the saved templates of a workload.
func Selector(uid types.UID) labels.Selector { return labels.SelectorFromSet(labelsOf(uid)) }

// SelectorMatches reports whether a workload's own selector matches its saved templates. Only a
// selector that has nothing but NotIn and DoesNotExist can match them.
func SelectorMatches(selector *metav1.LabelSelector, uid types.UID) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(labelsOf(uid)))
}

// SuccessPatch returns the merge patch that records another success of a saved
// version. The API server answers with a conflict if the object has changed.
func SuccessPatch(k Saved, release v1alpha1.Release) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid": k.UID, "resourceVersion": k.ResourceVersion, "annotations": annotationsOf(release),
		},
		"revision": release.Attempt,
	})
}

// Read reads a ControllerRevision; false if it is not a saved template of the workload.
func Read(r *appsv1.ControllerRevision, uid types.UID) (Saved, bool) {
	var d data
	release, known := v1alpha1.ReleaseOf(r.Annotations)
	owned := v1alpha1.OwnedBy(r, uid)
	if !known || !owned || r.Labels[WorkloadUIDLabel] != string(uid) || r.DeletionTimestamp != nil ||
		json.Unmarshal(r.Data.Raw, &d) != nil || len(d.Spec.Template) == 0 {
		return Saved{}, false
	}
	return Saved{Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion, Created: r.CreationTimestamp, Release: release, Template: d.Spec.Template}, true
}

// PodTemplate decodes the template of a workload of the kind.
func (k Saved) PodTemplate(kind workload.Kind) (*corev1.PodTemplateSpec, error) {
	t, err := workload.DecodeTemplate(kind, k.Template)
	if err != nil {
		return nil, fmt.Errorf("read the template of %s: %w", k.Name, err)
	}
	return t, nil
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
