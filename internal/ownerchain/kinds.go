package ownerchain

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
)

// mapping is the resource of a kind.
type mapping struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// builtIn are the kinds that need no discovery. Most owners of pods are of these.
var builtIn = map[schema.GroupKind]schema.GroupVersionResource{
	{Kind: "ReplicationController"}:      {Version: "v1", Resource: "replicationcontrollers"},
	{Group: "apps", Kind: "ReplicaSet"}:  {Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Kind: "Deployment"}:  {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Kind: "StatefulSet"}: {Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Kind: "DaemonSet"}:   {Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "batch", Kind: "Job"}:        {Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "batch", Kind: "CronJob"}:    {Group: "batch", Version: "v1", Resource: "cronjobs"},
}

// kinds maps kinds to resources.
type kinds struct {
	mapper *apidiscovery.Mapper
}

// mapping returns the resource of a kind; false if it is unknown.
func (k kinds) mapping(gvk schema.GroupVersionKind) (mapping, bool, error) {
	if resource, ok := builtIn[gvk.GroupKind()]; ok {
		return mapping{resource, true}, true, nil
	}
	found, err := k.mapper.Mapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return mapping{}, false, nil
	} else if err != nil {
		return mapping{}, false, err
	}
	return mapping{found.Resource, found.Scope.Name() == meta.RESTScopeNameNamespace}, true, nil
}
