package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// WorkloadWebhook is the name of the webhook for workloads and namespaces that name sets.
const WorkloadWebhook = "vpermissionset.kb.io"

// Workloads denies workloads and namespaces that name unknown sets.
type Workloads struct{ SetChecker SetChecker }

var _ admission.Handler = Workloads{}

// workload has the fields that the webhook reads of a workload or a namespace.
type workload struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Template template `json:"template"`
		// JobTemplate is the template of a CronJob. Its annotations are copied to each Job.
		JobTemplate struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				Template template `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

type template struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     corev1.PodSpec    `json:"spec"`
}

// Admit implements admission.Handler.
func (h Workloads) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	var w workload
	if err := json.Unmarshal(req.Object.Raw, &w); err != nil {
		return admission.Fail(fmt.Errorf("decode the object: %w", err))
	}
	all, err := w.sets()
	if err != nil {
		return deny(DecisionInvalid, fmt.Sprintf("annotation %s: %v", podmeta.PermissionSetAnnotation, err))
	}
	if len(all) == 0 {
		return admission.Allow(DecisionNoPermissionSet)
	}
	if w.onWindows() && len(w.setsOfPods()) > 0 {
		return denyWindows("workload or its template")
	}
	f := h.SetChecker.Check(ctx, all)
	if len(f.Unknown) > 0 {
		return deny(DecisionUnknownSet, fmt.Sprintf("annotation %s: there is no permission set %s at the permission centre; correct the name or register the set first",
			podmeta.PermissionSetAnnotation, strings.Join(f.Unknown, ", ")))
	}
	if w.hostNetwork() {
		if message := h.SetChecker.hostNetworkDenial(ctx, w.setsOfPods()); message != "" && f.Err == nil {
			return deny(DecisionHostNetwork, message)
		}
	}
	if f.Err != nil {
		return admission.Allow(DecisionUnchecked).Warn(fmt.Sprintf("permission sets %s could not be checked at the permission centre: %v", strings.Join(all, ", "), f.Err))
	}
	return admission.Allow(admission.DecisionAdmitted)
}

// levels returns the metadata of the templates and of the object, the nearest to the pods first.
func (w workload) levels() []metav1.ObjectMeta {
	job := w.Spec.JobTemplate
	return []metav1.ObjectMeta{job.Spec.Template.Metadata, job.Metadata, w.Spec.Template.Metadata, w.Metadata}
}

// sets returns all sets that the object and its templates name.
func (w workload) sets() ([]string, error) {
	var all []string
	for _, m := range w.levels() {
		sets, err := podmeta.ParseSets(m.Annotations[podmeta.PermissionSetAnnotation])
		if err != nil {
			return nil, err
		}
		for _, set := range sets {
			if !slices.Contains(all, set) {
				all = append(all, set)
			}
		}
	}
	return all, nil
}

// setsOfPods returns the sets that the pods request: those of the annotation nearest to them. The annotations
// must be valid.
func (w workload) setsOfPods() []string {
	for _, m := range w.levels() {
		if value, ok := m.Annotations[podmeta.PermissionSetAnnotation]; ok {
			sets, _ := podmeta.ParseSets(value)
			return sets
		}
	}
	return nil
}

func (w workload) hostNetwork() bool {
	return w.Spec.Template.Spec.HostNetwork || w.Spec.JobTemplate.Spec.Template.Spec.HostNetwork
}

func (w workload) onWindows() bool {
	return onWindows(&w.Spec.Template.Spec) || onWindows(&w.Spec.JobTemplate.Spec.Template.Spec)
}
