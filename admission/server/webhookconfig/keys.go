package webhookconfig

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// The namespace of a key distinguishes the two kinds of configuration; the objects are
// cluster-scoped and have no namespace.
const (
	mutating   = "mutating"
	validating = "validating"
)

// MutatingKey returns the key of a MutatingWebhookConfiguration.
func MutatingKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: mutating, Name: name}
}

// ValidatingKey returns the key of a ValidatingWebhookConfiguration.
func ValidatingKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: validating, Name: name}
}

func parseKey(key string) (kind, name string, ok bool) {
	kind, name, ok = strings.Cut(key, "/")
	return kind, name, ok && name != "" && (kind == mutating || kind == validating)
}
