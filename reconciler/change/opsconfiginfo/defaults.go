package opsconfiginfo

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// defaults are the default objects of an installation, by name. Their remarks mean "whether
// blocking is enabled" and "whether batches are enabled".
//
// They are created here and not by a manifest: a manifest must be applied after
// its CRD, in a separate command, and applying it again would overwrite users'
// settings.
func defaults() map[string]v1alpha1.OpsConfigInfoSpec {
	return map[string]v1alpha1.OpsConfigInfoSpec{
		"blocking": {Type: v1alpha1.ConfigBlocking, Enable: true, Remark: "是否开启阻断"},
		"branch":   {Type: v1alpha1.ConfigBatch, Enable: false, Content: "10", Remark: "是否开启批量防控"},
	}
}

// defaultKeys are the keys of the default objects.
func defaultKeys() []types.NamespacedName {
	var keys []types.NamespacedName
	for name := range defaults() {
		keys = append(keys, types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: name})
	}
	return keys
}

// Default is the state of a default object.
type Default struct {
	// Exists: an object with the name exists.
	Exists bool
	// TypeTaken: an object of another name has the type.
	TypeTaken bool
	// Recorded: it was created, or found, before.
	Recorded bool
}

// DefaultDecision is the result of DecideDefault.
type DefaultDecision struct{ Create, Record bool }

// DecideDefault creates an object once: an object that a person deletes stays
// deleted, and its type has the built-in default.
func DecideDefault(in Default) DefaultDecision {
	if in.Recorded {
		return DefaultDecision{}
	}
	return DefaultDecision{Create: !in.Exists && !in.TypeTaken, Record: true}
}
