package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
)

// knativeGroup is the API group of Knative Serving.
const knativeGroup = "serving.knative.dev"

// KnativeService is the Service of Knative Serving. Its controller creates a Revision for each
// template, and each Revision has a Deployment of its own. Serving keeps the pods of former
// Revisions, so no field of the Service stops a rollout: a hold moves the traffic.
var KnativeService = Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: knativeGroup, Version: "v1", Kind: "Service"},
	Resource:         "services",
	Revisions:        KnativeRevisions,
	Counts:           CountRevision,
	Optional:         true,
}

// Labels that Serving writes on a Revision and on its Deployment.
const (
	knativeServiceLabel    = knativeGroup + "/service"
	knativeServiceUIDLabel = knativeGroup + "/serviceUID"
)

// scalingPrefix is the prefix of the annotations of a template with which Serving scales its Revision.
const scalingPrefix = "autoscaling.knative.dev/"

// KnativeLastModifierAnnotation has the user who changed the spec of a Knative Service. Serving writes it.
const KnativeLastModifierAnnotation = knativeGroup + "/lastModifier"

// settingsKey is an annotation that exists only in templates in memory: the fields of a
// Revision that corev1.PodTemplateSpec lacks, such as containerConcurrency. Version hashes it.
const settingsKey = "breakwater.dev/revision-settings"

// KnativeServiceOf returns name and UID of the Knative Service to which a Deployment belongs; ok
// is false for other Deployments. Only Serving creates such a Deployment or changes its labels:
// see config/core/449-knative-revisions.yaml. The Deployment of a Revision whose Configuration
// has no Service is a workload of its own.
func KnativeServiceOf(deployment metav1.Object) (name string, uid types.UID, ok bool) {
	owner := metav1.GetControllerOfNoCopy(deployment)
	if owner == nil || owner.Kind != "Revision" || !strings.HasPrefix(owner.APIVersion, knativeGroup+"/") {
		return "", "", false
	}
	name, uid = deployment.GetLabels()[knativeServiceLabel], types.UID(deployment.GetLabels()[knativeServiceUIDLabel])
	return name, uid, name != "" && uid != ""
}

// OfKnativeService reports whether the workload is the Deployment of a Knative Service: the
// Service is judged, and not its Deployments.
func (w *Workload) OfKnativeService() bool {
	if w.Kind.GroupKind() != Deployment.GroupKind() {
		return false
	}
	_, _, ok := KnativeServiceOf(w)
	return ok
}

// ReleaseTemplate returns the template, as JSON, without the parts whose change is no release. For a
// Knative Service it leaves out the name of the Revision, the annotations that scale it, and
// Breakwater's own.
func (k Kind) ReleaseTemplate(template json.RawMessage) (json.RawMessage, error) {
	return k.trimTemplate(template, true)
}

// SavedTemplate returns the part of a template that a rollback applies. The template of a Knative
// Service has no name, because that of the former Revision is taken.
func (k Kind) SavedTemplate(template json.RawMessage) (json.RawMessage, error) {
	return k.trimTemplate(template, false)
}

func (k Kind) trimTemplate(template json.RawMessage, scaling bool) (json.RawMessage, error) {
	if k.Revisions != KnativeRevisions || len(template) == 0 {
		return template, nil
	}
	var content map[string]any
	if err := kubejson.Unmarshal(template, &content); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return scaling && strings.HasPrefix(key, scalingPrefix) || key == v1alpha1.VersionKey || key == v1alpha1.AttemptAnnotation
	})
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	delete(metadata, "name")
	if len(metadata) == 0 {
		delete(content, "metadata")
	}
	trimmed, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	return trimmed, nil
}

// WithScalingOf returns the template that a rollback writes: for a Knative Service the saved one with the annotations
// of the current one that scale it. A change of scale is no release, so the saved template does not have it.
func (k Kind) WithScalingOf(saved, current json.RawMessage) (json.RawMessage, error) {
	if k.Revisions != KnativeRevisions {
		return saved, nil
	}
	var content, live map[string]any
	if err := errors.Join(kubejson.Unmarshal(saved, &content), kubejson.Unmarshal(current, &live)); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	annotations := map[string]any{}
	merge := func(from map[string]any, scaling bool) {
		of, _ := field(from, "metadata", "annotations").(map[string]any)
		for key, value := range of {
			if strings.HasPrefix(key, scalingPrefix) == scaling {
				annotations[key] = value
			}
		}
	}
	merge(content, false)
	merge(live, true)
	if err := unstructured.SetNestedMap(content, annotations, "metadata", "annotations"); err != nil {
		return nil, fmt.Errorf("write the annotations of a template: %w", err)
	}
	return json.Marshal(content)
}

// DecodeTemplate decodes the template of a kind, as JSON, to the form that Version hashes.
func DecodeTemplate(kind Kind, template json.RawMessage) (*corev1.PodTemplateSpec, error) {
	released, err := kind.ReleaseTemplate(template)
	if err != nil {
		return nil, err
	}
	var out corev1.PodTemplateSpec
	if len(released) == 0 {
		return &out, nil
	}
	if err := kubejson.Unmarshal(released, &out); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	if kind.Revisions != KnativeRevisions {
		return &out, nil
	}
	var content any
	if err := kubejson.Unmarshal(released, &content); err != nil {
		return nil, fmt.Errorf("decode template: %w", err)
	}
	if settings := unknownFields(content, reflect.TypeFor[corev1.PodTemplateSpec]()); settings != nil {
		raw, err := json.Marshal(settings)
		if err != nil {
			return nil, fmt.Errorf("encode the settings of a Revision: %w", err)
		}
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[settingsKey] = string(raw)
	}
	return &out, nil
}

// templateRelease is the release in the annotations of a template, which Serving copies to
// Revision, Deployment, ReplicaSets and pods. depth is how many fields of the path to the
// annotations exist.
type templateRelease struct {
	version, attempt string
	depth            int
}

var templateAnnotations = []string{"spec", "template", "metadata", "annotations"}

// readKnative completes a Knative Service.
func (w *Workload) readKnative(content map[string]any) error {
	raw, err := json.Marshal(field(content, "spec", "template"))
	if err != nil {
		return fmt.Errorf("encode template: %w", err)
	}
	template, err := DecodeTemplate(w.Kind, raw)
	if err != nil {
		return err
	}
	w.Template = *template
	entries, _ := field(content, "spec", "traffic").([]any)
	for _, entry := range entries {
		if fields, ok := entry.(map[string]any); ok {
			w.Traffic = append(w.Traffic, fields)
		}
	}
	w.ReadyRevision = readyRevision(content)
	w.LatestRevision, _ = field(content, "status", "latestCreatedRevisionName").(string)
	w.ReplacesGradually = false // Serving replaces no pods: it moves the traffic when a Revision is Ready
	depth, value := find(content, templateAnnotations)
	annotations, _ := value.(map[string]any)
	of := func(key string) string { text, _ := annotations[key].(string); return text }
	w.onTemplate = templateRelease{of(v1alpha1.VersionKey), of(v1alpha1.AttemptAnnotation), depth}
	return nil
}

func field(content map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(content, path...) // another type is no value
	return value
}

// TemplateRelease returns version and attempt that the template of a Knative Service has; they
// are empty for other kinds, and for a baseline.
func (w *Workload) TemplateRelease() (version, attempt string) {
	return w.onTemplate.version, w.onTemplate.attempt
}

// WriteTemplateRelease returns the operations that write version and attempt on the template of a
// Knative Service, or remove empty ones; none for other kinds.
func (w *Workload) WriteTemplateRelease(version, attempt string) []Operation {
	if w.Kind.Revisions != KnativeRevisions || w.onTemplate.depth < 2 {
		return nil
	}
	var ops []Operation
	write := func(key, before, after string) {
		path := Pointer(append(append([]string{}, templateAnnotations...), key)...)
		switch {
		case before == after:
		case after == "":
			ops = append(ops, Operation{Op: "remove", Path: path})
		default:
			ops = append(ops, Operation{"add", path, after})
		}
	}
	write(v1alpha1.VersionKey, w.onTemplate.version, version)
	write(v1alpha1.AttemptAnnotation, w.onTemplate.attempt, attempt)
	if len(ops) == 0 {
		return nil
	}
	var parents []Operation
	for i := w.onTemplate.depth; i < len(templateAnnotations); i++ {
		parents = append(parents, Operation{"add", Pointer(templateAnnotations[:i+1]...), map[string]any{}})
	}
	return append(parents, ops...)
}

// WriteTraffic returns the operations that write spec.traffic of a Knative Service.
func (w *Workload) WriteTraffic(to knativetraffic.Split) []Operation {
	return []Operation{{"add", Pointer("spec", "traffic"), to}}
}

// RestoreTraffic returns the operations that move the traffic of a Knative Service back after a hold;
// none if a person has changed it since. The share of a failed Revision that spec.traffic named stays where it was
// moved, unless the Revision is one of overruled: those whose fail was overruled.
func (w *Workload) RestoreTraffic(held *v1alpha1.HeldTraffic, overruled ...string) []Operation {
	if held == nil || held.Former == nil {
		return nil
	}
	former, ok := knativetraffic.Restore(w.Traffic, held.Former, knativetraffic.Revisions{Names: held.Failed, Latest: true}, held.To, w.Name)
	if !ok {
		return nil
	}
	failed := slices.DeleteFunc(slices.Clone(held.Failed), func(name string) bool { return slices.Contains(overruled, name) })
	restored, _ := knativetraffic.Move(former, knativetraffic.Revisions{Names: failed}, held.To)
	return w.WriteTraffic(restored)
}

// readyRevision returns the latest Revision of a Knative Service that is Ready. Serving keeps its name in
// the status when it stops being Ready: then the answer is empty, because if one entry of a Route names a
// Revision that is not Ready, Serving programs none of its entries.
func readyRevision(service map[string]any) string {
	status, _ := service["status"].(map[string]any)
	created, ready := revisionNames(status)
	if created == ready && HasCondition(status, "ConfigurationsReady", "False") {
		return ""
	}
	return ready
}

// revisionReady reports whether the latest Revision and the routes of a Knative Service are Ready.
func revisionReady(service map[string]any) bool {
	status, _ := service["status"].(map[string]any)
	created, ready := revisionNames(status)
	return created != "" && created == ready && HasCondition(status, "Ready", "True")
}

// revisionNames returns the latest Revision that was created, and the latest one that became Ready.
func revisionNames(status map[string]any) (created, ready string) {
	created, _ = status["latestCreatedRevisionName"].(string)
	ready, _ = status["latestReadyRevisionName"].(string)
	return created, ready
}

// HasCondition reports whether a status has a condition with this status.
func HasCondition(status map[string]any, of, is string) bool {
	conditions, _ := status["conditions"].([]any)
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == of && fields["status"] == is
	})
}
