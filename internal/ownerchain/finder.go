// Package ownerchain walks from a pod to its topmost controller, for admission: it
// asks the API server, and remembers what it heard for a moment only. Watching
// every kind that may own a pod would cost memory for the whole cluster, and
// still be behind.
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

	"github.com/breakwater-dev/breakwater/internal/budget"
)

const (
	// remembered is how long an answer of the API server counts.
	cacheTTL = 2 * time.Second
	// deepest is the longest chain that is followed; the longest that is known
	// has four.
	maxDepth = 8
)

// Finder finds owners.
type Finder struct {
	client metadata.Interface
	// objects reads what is not metadata; see Reading.
	objects  dynamic.Interface
	kinds    *kinds
	cache    *utilcache.Expiring
	inflight singleflight.Group
}

// New returns a Finder. The mapper is asked about kinds that are not built in.
func New(client metadata.Interface, mapper meta.ResettableRESTMapper) *Finder {
	return &Finder{client: client, kinds: &kinds{mapper: mapper}, cache: utilcache.NewExpiring()}
}

// Reading has the Finder read what controllers select, too.
func (f *Finder) WithSelectors(objects dynamic.Interface) *Finder {
	f.objects = objects
	return f
}

// Chain returns the controllers above an object with these references. With
// live, nothing that is remembered counts.
//
// A kind that cannot be read ends the chain, and is taken to live.
func (f *Finder) Chain(ctx context.Context, namespace string, refs []metav1.OwnerReference, live bool) (budget.Chain, error) {
	var chain budget.Chain
	for range maxDepth {
		ref := metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: refs})
		if ref == nil {
			return chain, nil
		}
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			return chain, fmt.Errorf("owner %s: %w", ref.Name, err)
		}
		owner, err := f.owner(ctx, namespace, gv, *ref, live)
		if err != nil {
			return chain, fmt.Errorf("read owner %s %s: %w", ref.Kind, ref.Name, err)
		}
		chain = append(chain, budget.Owner{
			Group: gv.Group, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Deleted: owner.deleted,
		})
		refs = owner.refs
	}
	return chain, nil
}

// Annotation returns the value that the nearest controller above an object with
// these references has under a key; false when none has one. A kind that cannot
// be read has none, and ends the search.
func (f *Finder) Annotation(ctx context.Context, namespace string, refs []metav1.OwnerReference, key string) (string, bool, error) {
	for range maxDepth {
		ref := metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: refs})
		if ref == nil {
			return "", false, nil
		}
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil {
			return "", false, fmt.Errorf("owner %s: %w", ref.Name, err)
		}
		owner, err := f.owner(ctx, namespace, gv, *ref, false)
		if err != nil {
			return "", false, fmt.Errorf("read owner %s %s: %w", ref.Kind, ref.Name, err)
		}
		if value, ok := owner.annotations[key]; ok {
			return value, true, nil
		}
		refs = owner.refs
	}
	return "", false, nil
}

// known is what there is to know of an owner.
type ownerInfo struct {
	// gone: it is not there any more, or is about to go.
	deleted bool
	refs    []metav1.OwnerReference
	// uid is that of the object that was read.
	uid         string
	annotations map[string]string
}

func (f *Finder) owner(ctx context.Context, namespace string, gv schema.GroupVersion, ref metav1.OwnerReference, live bool) (ownerInfo, error) {
	mapping, ok := f.kinds.mapping(gv.WithKind(ref.Kind))
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
		return ownerInfo{}, err
	}
	return answer.(ownerInfo), nil
}

func (f *Finder) read(ctx context.Context, resource schema.GroupVersionResource, namespace string, ref metav1.OwnerReference) (ownerInfo, error) {
	// Who shares the flight must not fail because the first one went away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cacheTTL)
	defer cancel()
	o, err := f.client.Resource(resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrs.IsForbidden(err):
		return ownerInfo{uid: string(ref.UID)}, nil
	case apierrs.IsNotFound(err):
		return ownerInfo{deleted: true, uid: string(ref.UID)}, nil
	case err != nil:
		return ownerInfo{}, err
	case o.UID != ref.UID: // another of the same name
		return ownerInfo{deleted: true, uid: string(ref.UID)}, nil
	}
	return ownerInfo{deleted: o.DeletionTimestamp != nil, refs: o.OwnerReferences, uid: string(ref.UID), annotations: o.Annotations}, nil
}
