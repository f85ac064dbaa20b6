package ownerchain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discoveryRetry is the minimum time between two resets of the discovery cache.
const discoveryRetry = 30 * time.Second

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
	mapper meta.ResettableRESTMapper

	mu sync.Mutex
	// lastReset is when the mapper was last reset.
	lastReset time.Time
}

// mapping returns the resource of a kind; false if it is unknown.
func (k *kinds) mapping(gvk schema.GroupVersionKind) (mapping, bool) {
	if resource, ok := builtIn[gvk.GroupKind()]; ok {
		return mapping{resource, true}, true
	}
	found, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) && k.mayReset() {
		k.mapper.Reset()
		found, err = k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return mapping{}, false
	}
	return mapping{found.Resource, found.Scope.Name() == meta.RESTScopeNameNamespace}, true
}

// mayReset limits resets, because discovery sends a request per API group.
func (k *kinds) mayReset() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.lastReset) < discoveryRetry {
		return false
	}
	k.lastReset = time.Now()
	return true
}
