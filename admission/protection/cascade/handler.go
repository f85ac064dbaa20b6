package cascade

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Webhook is the name of the webhook and the last part of its path.
const Webhook = "vcascade.kb.io"

// Decisions, a label of the admission metric.
const (
	// DecisionNoDependents: there are none of the objects that are counted.
	DecisionNoDependents = "NoDependents"
	// DecisionDenied: there are such objects, or they cannot be counted.
	DecisionDenied = "Denied"
	// DecisionShadow: the same, but allowed in shadow mode.
	DecisionShadow = "Shadow"
)

const (
	// pageSize and maxPages limit how many objects are read, unless none of them counts.
	pageSize = 500
	maxPages = 4
)

// Handler is the admission handler. It writes nothing but Events and CloudEvents.
type Handler struct {
	Core corev1client.CoreV1Interface
	// Objects lists the objects of a CRD.
	Objects  metadata.Interface
	Recorder record.EventRecorder
	// Denials publishes denials as CloudEvents; nil disables it.
	Denials *denialevents.Publisher
}

var _ admission.Handler = Handler{}

// Admit implements admission.Handler.
func (h Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	if req.Operation != admissionv1.Delete {
		return admission.Allow(admission.DecisionAdmitted)
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.OldObject.Raw, &object); err != nil {
		return admission.Fail(fmt.Errorf("read %s %s: %w", req.Kind.Kind, req.Name, err))
	}
	if object.DeletionTimestamp != nil || !Protected(object.Labels) {
		return admission.Allow(admission.DecisionAdmitted)
	}
	dependents, hint, err := h.contents(ctx, req, object.Name)
	switch {
	case err != nil:
		dependents, hint = fmt.Sprintf("the objects that would be deleted with it cannot be counted (%v)", err), hintOf(object.Name, err)
	case dependents == "":
		return admission.Allow(DecisionNoDependents)
	default:
		dependents += " would be deleted with it"
	}
	message := fmt.Sprintf("%s %s is protected from cascading deletion: %s. Ways out: %sor remove its label %s or %s",
		req.Resource.Resource, object.Name, dependents, hint, v1alpha1.DisableCascadingDeletionLabel, v1alpha1.DeleteProtectionLabel)
	return h.answerProtected(ctx, req, &object, message)
}

// contents describes the objects that are counted, and how to delete them first. Name is that of the object: a
// deletecollection has none in the request.
func (h Handler) contents(ctx context.Context, req *admissionv1.AdmissionRequest, name string) (dependents, hint string, err error) {
	if req.Kind.Kind == "Namespace" {
		pods, err := h.pods(ctx, name)
		if err != nil {
			return "", "", err
		}
		volumeClaims, err := h.volumeClaims(ctx, name)
		return describe(pods, volumeClaims), "scale its workloads to 0 and delete its PersistentVolumeClaims first; ", err
	}
	objects, err := h.objects(ctx, req)
	return describe(objects), "delete its objects first; ", err
}

// hintOf says how the objects can be counted after an error.
func hintOf(name string, err error) string {
	if !apierrs.IsForbidden(err) {
		return "try again if the error is temporary; "
	}
	return fmt.Sprintf("allow the webhook to list %s by a ClusterRole that is labeled %s: \"true\" (docs/protection/cascading-deletion.md); ",
		name, v1alpha1.CountCustomResourcesLabel)
}

// answerProtected reports and denies the deletion of a protected object, or allows it in
// shadow mode.
func (h Handler) answerProtected(ctx context.Context, req *admissionv1.AdmissionRequest, object *metav1.PartialObjectMetadata, message string) admission.Answer {
	shadow := inShadowMode(object)
	if !ptr.Deref(req.DryRun, false) {
		about := &corev1.ObjectReference{
			APIVersion: metav1.GroupVersion{Group: req.Kind.Group, Version: req.Kind.Version}.String(),
			Kind:       req.Kind.Kind, Name: object.Name, UID: object.UID,
		}
		if shadow {
			h.Recorder.Eventf(about, corev1.EventTypeNormal, v1alpha1.ReasonCascadingDeletionWouldBeDenied, "%s: %s", req.UserInfo.Username, message)
		} else {
			h.Recorder.Eventf(about, corev1.EventTypeWarning, v1alpha1.ReasonCascadingDeletionDenied, "%s: %s", req.UserInfo.Username, message)
			h.Denials.Publish(ctx, events.DeletionDenied{
				DeniedBy:  events.Denier{APIVersion: about.APIVersion, Kind: about.Kind, Name: about.Name, UID: about.UID},
				Operation: string(v1alpha1.OperationDelete), Object: object.Name,
				User: req.UserInfo.Username, Reason: v1alpha1.ReasonCascadingDeletionDenied, Message: message,
			})
		}
	}
	if shadow {
		return admission.Allow(DecisionShadow).Warn("allowed in shadow mode: this deletion would have been denied: " + message)
	}
	return admission.Deny(DecisionDenied, metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Name: object.Name, Group: req.Kind.Group, Kind: req.Resource.Resource,
			Causes: []metav1.StatusCause{{Type: "CascadingDeletion", Message: message}}},
	})
}

// pods counts the active pods of a namespace.
func (h Handler) pods(ctx context.Context, namespace string) (count, error) {
	return countPages(ctx, count{one: "pod", many: "pods"}, h.Core.Pods(namespace).List,
		func(l *corev1.PodList) []corev1.Pod { return l.Items }, workload.PodActive)
}

// volumeClaims counts the bound PersistentVolumeClaims of a namespace.
func (h Handler) volumeClaims(ctx context.Context, namespace string) (count, error) {
	return countPages(ctx, count{one: "bound PersistentVolumeClaim", many: "bound PersistentVolumeClaims"}, h.Core.PersistentVolumeClaims(namespace).List,
		func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }, bound)
}

// countPages counts the objects of a list for which counts is true. After maxPages
// it stops as soon as it has found one, and sets more.
func countPages[L metav1.ListInterface, T any](ctx context.Context, c count, list func(context.Context, metav1.ListOptions) (L, error),
	items func(L) []T, counts func(*T) bool) (count, error) {
	options := metav1.ListOptions{Limit: pageSize}
	for n := 1; ; n++ {
		read, err := list(ctx, options)
		if err != nil {
			return c, fmt.Errorf("list %s: %w", c.many, err)
		}
		all := items(read)
		for i := range all {
			if counts(&all[i]) {
				c.n++
			}
		}
		options.Continue = read.GetContinue()
		if options.Continue == "" {
			return c, nil
		}
		if n >= maxPages && c.n > 0 {
			c.more = true
			return c, nil
		}
	}
}

// objects counts the objects of a CRD. It lists one; the API server adds the number
// of remaining objects.
func (h Handler) objects(ctx context.Context, req *admissionv1.AdmissionRequest) (count, error) {
	c := count{one: "object", many: "objects"}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(req.OldObject.Raw, &crd); err != nil {
		return c, fmt.Errorf("read CustomResourceDefinition: %w", err)
	}
	resource, ok := servedResource(&crd)
	if !ok {
		return c, fmt.Errorf("no version of %s is served", crd.Name)
	}
	list, err := h.Objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrs.IsNotFound(err) {
		return c, nil // not established: there are no objects
	} else if err != nil {
		return c, fmt.Errorf("list %s: %w", crd.Name, err)
	}
	c.n = int64(len(list.Items))
	if left := list.RemainingItemCount; left != nil {
		c.n += *left
	} else if list.Continue != "" {
		c.more = true
	}
	return c, nil
}
