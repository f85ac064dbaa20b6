package workload

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind describes one kind of workload.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural of the kind in paths and RBAC rules, such as deployments.
	Resource string
	// Revisions is the kind of object from which the release of a pod is read.
	Revisions Revisions
	// PauseField is the field that pauses a rollout.
	PauseField Field
	// Counts is the family of status fields that count pods.
	Counts Counts
	// Optional: the kind is built in, but the API server may not have it.
	Optional bool
}

// Revisions is the kind of object to which a workload's controller copies the annotations of the
// workload, or of its template, version and attempt among them.
type Revisions string

// The kinds of revisions.
const (
	// ReplicaSets: the workload owns ReplicaSets, and these own the pods.
	ReplicaSets Revisions = "ReplicaSet"
	// ControllerRevisions: the workload owns its pods, whose label
	// controller-revision-hash names a ControllerRevision of the workload.
	ControllerRevisions Revisions = "ControllerRevision"
	// KnativeRevisions: the workload owns Revisions through a Configuration, and each Revision
	// owns a Deployment. Only KnativeService has them.
	KnativeRevisions Revisions = "Revision"
)

// Field is a field of a workload and the value that pauses a rollout. It has no path if no field
// pauses a rollout of the kind.
type Field struct {
	// Path are the names of the field, from the top: spec, paused.
	Path []string
	// Paused is the value that pauses the rollout: a bool, an int64 or a string,
	// with the types of encoding/json and unstructured objects.
	Paused any
}

// Counts is a family of status fields.
type Counts string

// The families.
const (
	// CountReplicas: spec.replicas is the desired number; status.replicas,
	// updatedReplicas and availableReplicas are the observed ones.
	CountReplicas Counts = "Replicas"
	// CountScheduled: status.desiredNumberScheduled is the desired number;
	// updatedNumberScheduled and numberAvailable are the observed ones.
	CountScheduled Counts = "Scheduled"
	// CountRevision: the status has no numbers. One pod is desired, and it is available when the
	// latest Revision is Ready.
	CountRevision Counts = "Revision"
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
		PauseField:       Field{Path: []string{"spec", "paused"}, Paused: true},
		Counts:           CountReplicas,
	}
	// StatefulSet is held by a partition above every ordinal.
	StatefulSet = Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		Resource:         "statefulsets",
		Revisions:        ControllerRevisions,
		PauseField:       Field{Path: []string{"spec", "updateStrategy", "rollingUpdate", "partition"}, Paused: maxPartition},
		Counts:           CountReplicas,
	}
	// DaemonSet is held by the strategy OnDelete, because the API rejects
	// maxUnavailable 0. A pod that is deleted meanwhile is recreated with the
	// new version.
	DaemonSet = Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		Resource:         "daemonsets",
		Revisions:        ControllerRevisions,
		PauseField:       Field{Path: []string{"spec", "updateStrategy", "type"}, Paused: "OnDelete"},
		Counts:           CountScheduled,
	}
)

// BuiltIn returns the kinds that need no configuration.
func BuiltIn() []Kind { return []Kind{Deployment, StatefulSet, DaemonSet, KnativeService} }

// IsBuiltIn reports whether the kind needs no configuration.
func (k Kind) IsBuiltIn() bool {
	return slices.ContainsFunc(BuiltIn(), func(b Kind) bool { return b.GroupKind() == k.GroupKind() })
}

// IsStatefulSet reports whether the kind is the StatefulSet of Kubernetes, or that of OpenKruise (Advanced StatefulSet).
func (k Kind) IsStatefulSet() bool {
	return k.Kind == StatefulSet.Kind && (k.Group == StatefulSet.Group || k.Group == "apps.kruise.io")
}

// LowerKind returns the kind in lower case, for messages: deployment.
func (k Kind) LowerKind() string { return strings.ToLower(k.Kind) }

// Argument returns the kind as an argument of kubectl. Kinds of the groups core and apps are short.
// Others have their group: statefulset alone is that of apps, and not that of OpenKruise.
func (k Kind) Argument() string {
	if k.Group == "" || k.Group == Deployment.Group {
		return k.LowerKind()
	}
	return cmp.Or(k.Resource, k.LowerKind()) + "." + k.Group
}

// GroupVersionResource returns the resource of the kind in the API.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersion().WithResource(k.Resource)
}

// UpdatesInPlace reports whether the kind's controller may change the version of an existing
// pod, as OpenKruise does. The built-in controllers replace pods, and so does every controller
// that creates ReplicaSets.
func (k Kind) UpdatesInPlace() bool {
	return k.Revisions == ControllerRevisions && !k.IsBuiltIn()
}

// Is reports whether a reference (apiVersion and kind) is to this kind. The
// version is ignored, because an object has the same kind in all versions of a
// group.
func (k Kind) Is(apiVersion, kind string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && gv.Group == k.Group && kind == k.Kind
}
