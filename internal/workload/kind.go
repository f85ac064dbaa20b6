package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one kind of workload and what is special about it.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural of the kind in paths and RBAC rules, such as deployments.
	Resource string
	// Revisions says where the release of a pod is read.
	Revisions Revisions
	// Hold is the field that stops a roll-out.
	Hold Field
	// Counts says how the status counts pods.
	Counts Counts
}

// Revisions is the kind of object to which a workload's controller copies the
// workload's annotations, version and attempt among them.
type Revisions string

// The kinds of revisions.
const (
	// ReplicaSets: the workload owns ReplicaSets, and these own the pods.
	ReplicaSets Revisions = "ReplicaSet"
	// ControllerRevisions: the workload owns its pods, whose label
	// controller-revision-hash names a ControllerRevision of the workload.
	ControllerRevisions Revisions = "ControllerRevision"
)

// Field is a field of a workload and the value that holds a roll-out.
type Field struct {
	// Path are the names of the field, from the top: spec, paused.
	Path []string
	// Held is the value that stops the roll-out: a bool, an int64 or a string,
	// as encoding/json and unstructured objects have them.
	Held any
}

// Counts is a family of status fields.
type Counts string

// The families.
const (
	// CountReplicas: spec.replicas is wanted; status.replicas, updatedReplicas
	// and availableReplicas say what there is.
	CountReplicas Counts = "Replicas"
	// CountScheduled: status.desiredNumberScheduled is wanted;
	// updatedNumberScheduled and numberAvailable say what there is.
	CountScheduled Counts = "Scheduled"
)

// maxPartition is the largest partition: no pod has an ordinal of that size.
const maxPartition int64 = 2147483647

// The kinds that are built in.
var (
	// Deployment is held by spec.paused.
	Deployment = Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource:         "deployments",
		Revisions:        ReplicaSets,
		Hold:             Field{Path: []string{"spec", "paused"}, Held: true},
		Counts:           CountReplicas,
	}
	// StatefulSet is held by a partition above every ordinal.
	StatefulSet = Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		Resource:         "statefulsets",
		Revisions:        ControllerRevisions,
		Hold:             Field{Path: []string{"spec", "updateStrategy", "rollingUpdate", "partition"}, Held: maxPartition},
		Counts:           CountReplicas,
	}
	// DaemonSet is held by the strategy OnDelete: the API refuses maxUnavailable 0.
	// A pod that is deleted meanwhile comes back in the new version.
	DaemonSet = Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		Resource:         "daemonsets",
		Revisions:        ControllerRevisions,
		Hold:             Field{Path: []string{"spec", "updateStrategy", "type"}, Held: "OnDelete"},
		Counts:           CountScheduled,
	}
)

// BuiltIn returns the kinds that need no configuration.
func BuiltIn() []Kind { return []Kind{Deployment, StatefulSet, DaemonSet} }

// LowerKind is the kind in a sentence: deployment.
func (k Kind) LowerKind() string { return strings.ToLower(k.Kind) }

// GroupVersionResource names the kind in the API.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// Is says whether a reference (apiVersion and kind) is to this kind. The
// version does not count: an object has one kind in all versions of a group.
func (k Kind) Is(apiVersion, kind string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && gv.Group == k.Group && kind == k.Kind
}
