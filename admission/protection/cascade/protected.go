package cascade

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
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
