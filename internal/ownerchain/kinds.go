package ownerchain

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// forget is how long a kind that there is not is not asked for again.
const discoveryRetry = 30 * time.Second

// mapping is where objects of a kind are read.
type mapping struct {
	resource   schema.GroupVersionResource
	namespaced bool
}

// builtIn need no discovery: a pod's owners are mostly these.
var builtIn = map[schema.GroupKind]schema.GroupVersionResource{
	{Kind: "ReplicationController"}:      {Version: "v1", Resource: "replicationcontrollers"},
	{Group: "apps", Kind: "ReplicaSet"}:  {Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Kind: "Deployment"}:  {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Kind: "StatefulSet"}: {Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Kind: "DaemonSet"}:   {Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "batch", Kind: "Job"}:        {Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "batch", Kind: "CronJob"}:    {Group: "batch", Version: "v1", Resource: "cronjobs"},
}

// kinds knows where kinds are read.
type kinds struct {
	mapper meta.ResettableRESTMapper

	mu sync.Mutex
	// missed is when the mapper was last asked anew for a kind.
	lastReset time.Time
}

// mapping returns where the kind is read, false when nowhere.
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

// mayAskAnew: discovery is a request for every group.
func (k *kinds) mayReset() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.lastReset) < discoveryRetry {
		return false
	}
	k.lastReset = time.Now()
	return true
}
