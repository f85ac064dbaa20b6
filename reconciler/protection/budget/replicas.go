package budget

import (
	"context"
	"fmt"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/breakwater-dev/breakwater/internal/ownerchain"
)

// replicas is how many pods an owner wants.
type replicas struct {
	// wanted is nil if unknown; unknown says why.
	wanted  *int32
	unknown string
	// ofPods reports whether wanted is a number of pods for certain. The scale
	// subresource of a CRD may count groups of pods.
	ofPods bool
	// observed is status.replicas of the scale subresource.
	observed int32
	// nodes is how many nodes a BroadcastJob has, for owner.wants; 0 while it is paused, and for other kinds.
	nodes int32
}

// replicaPaths are the fields of the kinds that are known to count their pods.
var replicaPaths = map[schema.GroupKind][]string{
	{Kind: "ReplicationController"}:                     {"spec", "replicas"},
	{Group: "apps", Kind: "Deployment"}:                 {"spec", "replicas"},
	{Group: "apps", Kind: "ReplicaSet"}:                 {"spec", "replicas"},
	{Group: "apps", Kind: "StatefulSet"}:                {"spec", "replicas"},
	{Group: "apps", Kind: "DaemonSet"}:                  {"status", "desiredNumberScheduled"},
	batchJob:                                            {"spec", "parallelism"},
	{Group: "apps.kruise.io", Kind: "CloneSet"}:         {"spec", "replicas"},
	{Group: "apps.kruise.io", Kind: "StatefulSet"}:      {"spec", "replicas"},
	{Group: "apps.kruise.io", Kind: "UnitedDeployment"}: {"spec", "replicas"},
	{Group: "apps.kruise.io", Kind: "DaemonSet"}:        {"status", "desiredNumberScheduled"},
	broadcastJob: {"status", "desired"},
}

// withoutReplicas are kinds in owner chains that want no number of pods.
var withoutReplicas = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                     true, // the leader of a group
	{Group: "batch", Kind: "CronJob"}: true,
	// The Deployments below a Knative Service have the replicas.
	{Group: "serving.knative.dev", Kind: "Revision"}:      true,
	{Group: "serving.knative.dev", Kind: "Configuration"}: true,
	{Group: "serving.knative.dev", Kind: "Service"}:       true,
}

// readReplicas returns the replicas of an owner: by its field if its kind is known to
// count pods, otherwise by its scale subresource.
func readReplicas(ctx context.Context, client dynamic.ResourceInterface, resource string, kind schema.GroupKind, o *unstructured.Unstructured) (replicas, error) {
	if path, ok := replicaPaths[kind]; ok {
		n, found, err := unstructured.NestedInt64(o.Object, path...)
		if err != nil || !found {
			return replicas{unknown: "it has no " + strings.Join(path, ".")}, nil //nolint:nilerr // a field of another type is none
		}
		r := replicas{ofPods: true}
		switch kind {
		case batchJob:
			n = jobReplicas(o, n)
		case broadcastJob:
			if !paused(o) {
				r.nodes = int32(n)
			}
			n = broadcastJobReplicas(o, n)
		}
		r.wanted = new(int32(n))
		return r, nil
	}
	if withoutReplicas[kind] {
		return replicas{unknown: "its kind has no replicas"}, nil
	}
	scale, err := client.Get(ctx, o.GetName(), metav1.GetOptions{}, "scale")
	switch {
	// The API server answers with an internal error if the field of the replicas is not set.
	case apierrs.IsNotFound(err), apierrs.IsMethodNotSupported(err), apierrs.IsInternalError(err):
		return replicas{unknown: "it has no scale subresource with replicas"}, nil
	case apierrs.IsForbidden(err):
		return replicas{unknown: ownerchain.Forbidden(resource+"/scale", kind.Group)}, nil
	case err != nil:
		return replicas{}, fmt.Errorf("read the scale of %s %s: %w", kind, o.GetName(), err)
	}
	// The API server omits 0.
	wanted, _, errWanted := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	observed, _, errObserved := unstructured.NestedInt64(scale.Object, "status", "replicas")
	if errWanted != nil || errObserved != nil {
		return replicas{unknown: "its scale subresource is invalid"}, nil //nolint:nilerr // a retry does not help
	}
	return replicas{wanted: new(int32(wanted)), observed: int32(observed)}, nil
}
