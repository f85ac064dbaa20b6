package opsconfiginfo

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// defaults are the objects that are there after an installation, by name.
//
// They are created here and not by a manifest, for two reasons: a manifest
// would have to be applied after its CRD, in a command of its own, and each
// time it is applied again would undo what a person set.
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

// Default is what is known about one of the default objects.
type Default struct {
	// Exists: an object of the name is there.
	Exists bool
	// TypeTaken: an object of another name has the type.
	TypeTaken bool
	// Recorded: it was created, or found, before.
	Recorded bool
}

// DefaultDecision says what to do about it.
type DefaultDecision struct{ Create, Record bool }

// DecideDefault creates an object once: what a person deletes stays deleted,
// and the value of its type is the built-in default.
func DecideDefault(in Default) DefaultDecision {
	if in.Recorded {
		return DefaultDecision{}
	}
	return DefaultDecision{Create: !in.Exists && !in.TypeTaken, Record: true}
}
