// Package cascade decides whether a Namespace or a CustomResourceDefinition that
// somebody has protected may be deleted: not while something lives underneath
// it. What an object says by itself (a Deployment its replicas) the API server
// decides in CEL, by the policies of config/protection; these two do not know
// what would go with them, so somebody has to look.
package cascade

import "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"

// Webhook is the name of the webhook, and part of its path.
const Webhook = "vcascade.kb.io"

// Decisions: what answers are counted as.
const (
	// DecisionFree: nothing would go with it.
	DecisionFree = "Free"
	// DecisionRefused: something would.
	DecisionDenied = "Denied"
	// DecisionShadow: something would, and it was let through in shadow mode.
	DecisionShadow = "Shadow"
)

// Protected says whether the labels of an object ask for protection from
// cascading deletion. ProtectAlways is not asked here: a policy refuses it.
func Protected(labels map[string]string) bool {
	return labels[v1alpha1.DisableCascadingDeletionLabel] == "true" || labels[v1alpha1.DeleteProtectionLabel] == v1alpha1.ProtectCascading
}
