package budget

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	appslisters "k8s.io/client-go/listers/apps/v1"

	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
)

// ownerCacheTTL is how long an owner is cached that was read from the API server: its kind is not
// watched, or its informer does not have it yet.
const ownerCacheTTL = 2 * time.Second

// notServed is why the replicas of an owner of an unknown kind are unknown.
const notServed = "the API server does not serve the kind"

// owner is a controller of pods.
type owner struct {
	schema.GroupKind
	name string
	uid  types.UID
	// terminatingOrGone reports whether it is terminating or not found.
	terminatingOrGone bool
	refs              []metav1.OwnerReference
	// podLabels are the labels of the pod template of a Deployment or StatefulSet.
	podLabels map[string]string
	// fromCache reports whether it comes from the cache of earlier reads, which are at
	// most ownerCacheTTL old.
	fromCache bool
	replicas
}

// wants returns how many pods the owner, whose replicas are known, wants. A node of a BroadcastJob whose pod has ended
// wants no further one, until this pod is deleted. The pods show which have ended: status.succeeded and status.failed
// may count a deleted pod until it is replaced. The ended pod of a removed node is deleted only after a minute or so, and is
// subtracted until then. Therefore the owner wants at least its active pods.
func (o owner) wants(pods map[ownerKey]podCounts) int32 {
	if o.nodes == 0 {
		return *o.wanted
	}
	p := pods[o.key()]
	return min(*o.wanted, max(o.nodes-p.ended, p.active))
}

// ownerKey identifies an owner by what a reference to it has. A user can edit the references of
// a pod, so the UID alone may name the owner of other pods.
type ownerKey struct {
	schema.GroupKind
	name string
	uid  types.UID
}

func (o owner) key() ownerKey { return ownerKey{o.GroupKind, o.name, o.uid} }

func keyOfReference(ref *metav1.OwnerReference) ownerKey {
	return ownerKey{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name, ref.UID}
}

// owners reads owners: the built-in kinds of apps from informers; other kinds, and owners that
// their informer does not have yet, from the API server, cached for ownerCacheTTL.
type owners struct {
	deployments  appslisters.DeploymentLister
	replicaSets  appslisters.ReplicaSetLister
	statefulSets appslisters.StatefulSetLister
	daemonSets   appslisters.DaemonSetLister
	services     *knativeServices

	client dynamic.Interface
	mapper *apidiscovery.Mapper
	cache  *utilcache.Expiring
}

// get returns the owner with the name. If no object has the name and the UID, the
// result is marked terminatingOrGone and has no UID.
func (o *owners) get(ctx context.Context, kind schema.GroupKind, version, namespace, name string, uid types.UID) (owner, error) {
	found, ok := o.cached(kind, namespace, name)
	if ok && (uid == "" || found.uid == uid) {
		return found, nil
	}
	// An object that is missing in the cache may be new.
	found, err := o.readCached(ctx, kind, version, namespace, name)
	if err == nil && uid != "" && found.uid != "" && found.uid != uid {
		return owner{GroupKind: kind, name: name, terminatingOrGone: true, fromCache: found.fromCache}, nil
	}
	return found, err
}

// watched are the kinds of owners that have informers, so that changes enqueue their budgets.
var watched = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "ReplicaSet"}: true,
	{Group: "apps", Kind: "StatefulSet"}: true, {Group: "apps", Kind: "DaemonSet"}: true,
}

func (o *owners) cached(kind schema.GroupKind, namespace, name string) (owner, bool) {
	if !watched[kind] {
		return owner{}, false
	}
	switch kind.Kind {
	case "Deployment":
		if d, err := o.deployments.Deployments(namespace).Get(name); err == nil {
			return ownerFrom(d)
		}
	case "ReplicaSet":
		if s, err := o.replicaSets.ReplicaSets(namespace).Get(name); err == nil {
			return ownerFrom(s)
		}
	case "StatefulSet":
		if s, err := o.statefulSets.StatefulSets(namespace).Get(name); err == nil {
			return ownerFrom(s)
		}
	case "DaemonSet":
		if d, err := o.daemonSets.DaemonSets(namespace).Get(name); err == nil {
			return ownerFrom(d)
		}
	}
	return owner{}, false
}

// ownerFrom returns the fields of a cached workload that budgets need; false for another kind.
func ownerFrom(obj any) (owner, bool) {
	of := func(kind string, m metav1.Object, wanted *int32, podLabels map[string]string) (owner, bool) {
		o := ownerOf(schema.GroupKind{Group: "apps", Kind: kind}, m, replicas{wanted: wanted, ofPods: true})
		o.podLabels = podLabels
		return o, true
	}
	switch w := obj.(type) {
	case *appsv1.Deployment:
		return of("Deployment", w, w.Spec.Replicas, w.Spec.Template.Labels)
	case *appsv1.ReplicaSet:
		return of("ReplicaSet", w, w.Spec.Replicas, nil)
	case *appsv1.StatefulSet:
		return of("StatefulSet", w, w.Spec.Replicas, w.Spec.Template.Labels)
	case *appsv1.DaemonSet:
		return of("DaemonSet", w, &w.Status.DesiredNumberScheduled, nil)
	}
	return owner{}, false
}

func ownerOf(kind schema.GroupKind, m metav1.Object, r replicas) owner {
	return owner{
		GroupKind: kind, name: m.GetName(), uid: m.GetUID(), terminatingOrGone: m.GetDeletionTimestamp() != nil,
		replicas: r, refs: m.GetOwnerReferences(),
	}
}

// ownerAnswer is the cached result of reading an owner.
type ownerAnswer struct {
	owner owner
	err   error
}

// readCached reads an owner that no informer has, at most once per ownerCacheTTL: its kind is not
// watched, or its informer does not have it yet. A read that takes longer ends with an error.
func (o *owners) readCached(ctx context.Context, kind schema.GroupKind, version, namespace, name string) (owner, error) {
	key := kind.String() + "/" + namespace + "/" + name
	if cached, ok := o.cache.Get(key); ok {
		answer := cached.(ownerAnswer)
		answer.owner.fromCache = true
		return answer.owner, answer.err
	}
	ctx, cancel := context.WithTimeout(ctx, ownerCacheTTL)
	defer cancel()
	found, err := apidiscovery.Read(o.mapper, func() (owner, error) { return o.read(ctx, kind, version, namespace, name) })
	o.cache.Set(key, ownerAnswer{found, err}, ownerCacheTTL)
	return found, err
}

// read reads an owner. One that cannot be read is assumed to exist and has no UID.
func (o *owners) read(ctx context.Context, kind schema.GroupKind, version, namespace, name string) (owner, error) {
	unread := owner{GroupKind: kind, name: name}
	mapping, err := o.mapper.Mapping(kind, version)
	if meta.IsNoMatchError(err) {
		unread.unknown = notServed
		return unread, nil
	} else if err != nil {
		return unread, fmt.Errorf("find %s: %w", kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	resource := o.client.Resource(mapping.Resource).Namespace(namespace)
	found, err := resource.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apidiscovery.IsObjectNotFound(err):
		return owner{GroupKind: kind, name: name, terminatingOrGone: true}, nil
	case apierrs.IsForbidden(err):
		unread.unknown = ownerchain.Forbidden(mapping.Resource.Resource, kind.Group)
		return unread, nil
	case err != nil:
		return unread, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	r, err := readReplicas(ctx, resource, mapping.Resource.Resource, kind, found)
	return ownerOf(kind, found, r), err
}
