package budget

import (
	"context"
	"fmt"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/utils/ptr"
)

// ownerCacheTTL is how long an owner that is not watched is cached.
const ownerCacheTTL = 2 * time.Second

// owner is a controller of pods.
type owner struct {
	schema.GroupKind
	name string
	uid  types.UID
	// deleted reports whether it is terminating or not found.
	deleted bool
	// replicas is the desired number of pods; nil if unknown.
	replicas *int32
	refs     []metav1.OwnerReference
}

// owners reads owners: the built-in kinds of apps from caches, other kinds live.
type owners struct {
	deployments  appslisters.DeploymentLister
	replicaSets  appslisters.ReplicaSetLister
	statefulSets appslisters.StatefulSetLister
	daemonSets   appslisters.DaemonSetLister

	client dynamic.Interface
	mapper meta.RESTMapper
	cache  *utilcache.Expiring
}

// get returns the owner of that name. If there is none with that UID, it is deleted
// and has no UID.
func (o *owners) get(ctx context.Context, kind schema.GroupKind, version, namespace, name string, uid types.UID) (owner, error) {
	found, ok := o.cached(kind, namespace, name)
	if ok && (uid == "" || found.uid == uid) {
		return found, nil
	}
	// An object that is missing in the cache may be new.
	found, err := o.live(ctx, kind, version, namespace, name)
	if err == nil && uid != "" && found.uid != uid {
		return owner{GroupKind: kind, name: name, deleted: true}, nil
	}
	return found, err
}

func (o *owners) cached(kind schema.GroupKind, namespace, name string) (owner, bool) {
	if kind.Group != "apps" {
		return owner{}, false
	}
	of := func(m metav1.Object, replicas *int32, err error) (owner, bool) {
		if err != nil {
			return owner{}, false
		}
		return ownerOf(kind, m, replicas), true
	}
	switch kind.Kind {
	case "Deployment":
		if d, err := o.deployments.Deployments(namespace).Get(name); err == nil {
			return of(d, d.Spec.Replicas, err)
		}
	case "ReplicaSet":
		if s, err := o.replicaSets.ReplicaSets(namespace).Get(name); err == nil {
			return of(s, s.Spec.Replicas, err)
		}
	case "StatefulSet":
		if s, err := o.statefulSets.StatefulSets(namespace).Get(name); err == nil {
			return of(s, s.Spec.Replicas, err)
		}
	case "DaemonSet":
		if d, err := o.daemonSets.DaemonSets(namespace).Get(name); err == nil {
			return of(d, &d.Status.DesiredNumberScheduled, err)
		}
	}
	return owner{}, false
}

func ownerOf(kind schema.GroupKind, m metav1.Object, replicas *int32) owner {
	return owner{
		GroupKind: kind, name: m.GetName(), uid: m.GetUID(), deleted: m.GetDeletionTimestamp() != nil,
		replicas: replicas, refs: m.GetOwnerReferences(),
	}
}

func (o *owners) live(ctx context.Context, kind schema.GroupKind, version, namespace, name string) (owner, error) {
	key := kind.String() + "/" + namespace + "/" + name
	if answer, ok := o.cache.Get(key); ok {
		return answer.(owner), nil
	}
	none := owner{GroupKind: kind, name: name, deleted: true}
	var versions []string
	if version != "" {
		versions = append(versions, version)
	}
	mapping, err := o.mapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		return owner{GroupKind: kind, name: name}, nil // an unknown kind is assumed to exist
	} else if err != nil {
		return none, fmt.Errorf("find %s: %w", kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	found, err := o.client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrs.IsNotFound(err):
		o.cache.Set(key, none, ownerCacheTTL)
		return none, nil
	case apierrs.IsForbidden(err):
		unread := owner{GroupKind: kind, name: name}
		o.cache.Set(key, unread, ownerCacheTTL)
		return unread, nil
	case err != nil:
		return none, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	answer := ownerOf(kind, found, desiredReplicas(found))
	o.cache.Set(key, answer, ownerCacheTTL)
	return answer, nil
}

// desiredReplicas reads the desired number of pods from an object of any kind.
func desiredReplicas(o *unstructured.Unstructured) *int32 {
	for _, path := range [][]string{{"spec", "replicas"}, {"spec", "parallelism"}, {"status", "desiredNumberScheduled"}} {
		if n, ok, err := unstructured.NestedInt64(o.Object, path...); ok && err == nil {
			return ptr.To(int32(n))
		}
	}
	return nil
}
