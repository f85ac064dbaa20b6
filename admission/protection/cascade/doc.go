// Package cascade decides whether a protected Namespace or CustomResourceDefinition may
// be deleted: a Namespace only while it has no active pods and no bound
// PersistentVolumeClaims, a CustomResourceDefinition only while it has no objects. The
// webhook has to count them. For objects whose own fields show dependent objects, such
// as a Deployment with replicas, the ValidatingAdmissionPolicies of config/protection decide.
package cascade

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
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

// Protected reports whether the labels protect an object from cascading deletion. A
// ValidatingAdmissionPolicy denies deletions for ProtectAlways.
func Protected(labels map[string]string) bool {
	return labels[v1alpha1.DisableCascadingDeletionLabel] == "true" || labels[v1alpha1.DeleteProtectionLabel] == v1alpha1.ProtectCascading
}

// Enforced reports whether the deletion of an object is denied while it has any of the objects that are
// counted: it is protected, and not in shadow mode.
func Enforced(o metav1.Object) bool { return Protected(o.GetLabels()) && !inShadowMode(o) }

func inShadowMode(o metav1.Object) bool {
	return o.GetAnnotations()[v1alpha1.ShadowAnnotation] == "true"
}
