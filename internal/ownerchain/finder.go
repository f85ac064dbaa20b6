// Package ownerchain finds the controllers of a pod up to the topmost one, the selector of
// one, and the Revisions of a Knative Service that get requests. A Finder reads from the API
// server and caches for two seconds. A watch of every kind that may own a pod would cost
// memory for the whole cluster and would still be stale.
package ownerchain

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// cacheTTL is how long an answer of the API server is cached.
const cacheTTL = 2 * time.Second

// Finder finds owners.
type Finder struct {
	client metadata.Interface
	// objects reads selectors and Knative Services; see WithObjects.
	objects  dynamic.Interface
	kinds    kinds
	cache    *utilcache.Expiring
	inflight singleflight.Group
}

// New returns a Finder. The mapper maps kinds that are not built in.
func New(client metadata.Interface, mapper meta.ResettableRESTMapper) *Finder {
	return &Finder{client: client, kinds: kinds{apidiscovery.NewMapper(mapper)}, cache: utilcache.NewExpiring()}
}

// WithObjects sets the client that SelectorOf and RevisionsWithTraffic need.
func (f *Finder) WithObjects(objects dynamic.Interface) *Finder {
	f.objects = objects
	return f
}

// Chain returns the controllers above an object with these references. If live is true,
// it ignores the cache. An owner of a kind that cannot be read ends the chain and is
// assumed to exist.
func (f *Finder) Chain(ctx context.Context, namespace string, refs []metav1.OwnerReference, live bool) (budget.Chain, error) {
	var chain budget.Chain
	err := Walk(refs, func(kind schema.GroupVersionKind, ref *metav1.OwnerReference) ([]metav1.OwnerReference, error) {
		owner, err := f.owner(ctx, namespace, kind, *ref, live)
		chain = append(chain, budget.Owner{
			Group: kind.Group, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, TerminatingOrGone: owner.terminatingOrGone,
		})
		return owner.refs, err
	})
	return chain, err
}

// Annotation returns the annotation of the nearest controller above an object with
// these references that has the key; false if none has it. An owner that cannot be
// read ends the search, and so does a pod: not each caller may read pods, and all must
// find the same. The annotation of a ReplicaSet counts only if its Deployment or Rollout does
// not exist or cannot be read: their controllers copy annotations to the ReplicaSet, and do not remove
// them there.
func (f *Finder) Annotation(ctx context.Context, namespace string, refs []metav1.OwnerReference, key string) (string, bool, error) {
	var value string
	var found, copied bool
	err := Walk(refs, func(kind schema.GroupVersionKind, ref *metav1.OwnerReference) ([]metav1.OwnerReference, error) {
		if is(kind, "", "Pod") {
			return nil, nil
		}
		owner, err := f.owner(ctx, namespace, kind, *ref, false)
		if original, ok := owner.annotations[key]; err == nil && copied && (!ok || original != value) {
			// The cached Deployment may be older than the copy.
			owner, err = f.owner(ctx, namespace, kind, *ref, true)
		}
		if err != nil {
			return nil, err
		}
		if owner.read || !copied {
			value, found = owner.annotations[key]
		}
		if copied = found && is(kind, "apps", "ReplicaSet") && hasCopies(owner.refs); found && !copied {
			return nil, nil
		}
		return owner.refs, nil
	})
	return value, found, err
}

func is(kind schema.GroupVersionKind, group, name string) bool {
	return kind.Group == group && kind.Kind == name
}

// hasCopies reports whether a ReplicaSet with these references has copies of the annotations of its controller.
func hasCopies(refs []metav1.OwnerReference) bool {
	ref := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: refs})
	if ref == nil {
		return false
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return is(kind, "apps", "Deployment") || is(kind, "argoproj.io", "Rollout")
}

// ownerInfo is the cached part of an owner.
type ownerInfo struct {
	// read reports whether the owner exists and was read.
	read bool
	// terminatingOrGone reports whether the owner is terminating or not found.
	terminatingOrGone bool
	refs              []metav1.OwnerReference
	// uid is the UID in the owner reference.
	uid         string
	annotations map[string]string
}

func (f *Finder) owner(ctx context.Context, namespace string, kind schema.GroupVersionKind, ref metav1.OwnerReference, live bool) (ownerInfo, error) {
	return apidiscovery.Read(f.kinds.mapper, func() (ownerInfo, error) { return f.mappedOwner(ctx, namespace, kind, ref, live) })
}

func (f *Finder) mappedOwner(ctx context.Context, namespace string, kind schema.GroupVersionKind, ref metav1.OwnerReference, live bool) (ownerInfo, error) {
	mapping, ok, err := f.kinds.mapping(kind)
	if err != nil {
		return ownerInfo{}, fmt.Errorf("find resource of owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	if !ok {
		return ownerInfo{}, nil
	}
	if !mapping.namespaced {
		namespace = ""
	}
	key := mapping.resource.String() + "/" + namespace + "/" + ref.Name
	if !live {
		if answer, ok := f.cache.Get(key); ok && answer.(ownerInfo).uid == string(ref.UID) {
			return answer.(ownerInfo), nil
		}
	}
	answer, err, _ := f.inflight.Do(key+"@"+string(ref.UID), func() (any, error) {
		k, err := f.read(ctx, mapping.resource, namespace, ref)
		if err == nil {
			f.cache.Set(key, k, cacheTTL)
		}
		return k, err
	})
	if err != nil {
		return ownerInfo{}, fmt.Errorf("read owner %s %s: %w", ref.Kind, ref.Name, err)
	}
	return answer.(ownerInfo), nil
}

func (f *Finder) read(ctx context.Context, resource schema.GroupVersionResource, namespace string, ref metav1.OwnerReference) (ownerInfo, error) {
	// The read is shared: it must not fail when the first caller is canceled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cacheTTL)
	defer cancel()
	o, err := f.client.Resource(resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrs.IsForbidden(err):
		return ownerInfo{uid: string(ref.UID)}, nil
	case apidiscovery.IsObjectNotFound(err):
		return ownerInfo{terminatingOrGone: true, uid: string(ref.UID)}, nil
	case err != nil:
		return ownerInfo{}, err
	case o.UID != ref.UID: // recreated with the same name
		return ownerInfo{terminatingOrGone: true, uid: string(ref.UID)}, nil
	}
	return ownerInfo{read: true, terminatingOrGone: o.DeletionTimestamp != nil, refs: o.OwnerReferences, uid: string(ref.UID), annotations: o.Annotations}, nil
}
