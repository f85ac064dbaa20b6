package ownerchain

import (
	"context"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Selection says which pods a controller selects.
type Selection struct {
	// Selector is nil if it cannot be read, and matches everything if the controller has none.
	Selector labels.Selector
	// Unknown says why Selector is nil; empty if the controller is not found.
	Unknown string
	// TerminatingOrGone reports whether the controller is terminating or not found.
	TerminatingOrGone bool
}

// SelectorOf returns which pods the controller among the references selects. It is
// cached, because a rollout labels many pods of one controller.
func (f *Finder) SelectorOf(ctx context.Context, namespace string, refs []metav1.OwnerReference) (Selection, error) {
	ref := metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: refs})
	if ref == nil {
		return Selection{TerminatingOrGone: true}, nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return Selection{}, fmt.Errorf("parse apiVersion of owner %s: %w", ref.Name, err)
	}
	return apidiscovery.Read(f.kinds.mapper, func() (Selection, error) { return f.mappedSelection(ctx, namespace, gv.WithKind(ref.Kind), ref) })
}

func (f *Finder) mappedSelection(ctx context.Context, namespace string, kind schema.GroupVersionKind, ref *metav1.OwnerReference) (Selection, error) {
	mapping, ok, err := f.kinds.mapping(kind)
	if err != nil {
		return Selection{}, err
	} else if !ok {
		return unknown(ref, "the API server does not serve the kind"), nil
	}
	if !mapping.namespaced {
		namespace = ""
	}
	key := "selector of " + mapping.resource.String() + "/" + namespace + "/" + ref.Name + "@" + string(ref.UID)
	if answer, ok := f.cache.Get(key); ok {
		return answer.(Selection), nil
	}
	answer, err, _ := f.inflight.Do(key, func() (any, error) {
		s, err := f.selection(ctx, mapping.resource, namespace, *ref)
		if err == nil {
			f.cache.Set(key, s, cacheTTL)
		}
		return s, err
	})
	if err != nil {
		return Selection{}, fmt.Errorf("read selector of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return answer.(Selection), nil
}

func (f *Finder) selection(ctx context.Context, resource schema.GroupVersionResource, namespace string, ref metav1.OwnerReference) (Selection, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cacheTTL)
	defer cancel()
	o, err := f.objects.Resource(resource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case apierrs.IsForbidden(err):
		return unknown(&ref, Forbidden(resource.Resource, resource.Group)), nil
	case apidiscovery.IsObjectNotFound(err):
		return Selection{TerminatingOrGone: true}, nil
	case err != nil:
		return Selection{}, err
	}
	s := Selection{Selector: parseSelector(o)}
	if s.Selector == nil {
		s = unknown(&ref, "it is no label selector")
	}
	s.TerminatingOrGone = o.GetUID() != ref.UID || o.GetDeletionTimestamp() != nil
	return s, nil
}

func unknown(ref *metav1.OwnerReference, why string) Selection {
	return Selection{Unknown: fmt.Sprintf("the selector of %s %s is unknown: %s", ref.Kind, ref.Name, why)}
}

// Forbidden says how to permit the read of an owner.
func Forbidden(resource, group string) string {
	return fmt.Sprintf("reading it is forbidden: permit get on %s of group %q with a ClusterRole that has the label breakwater.dev/owners=true", resource, group)
}

// parseSelector parses spec.selector; nil if it is invalid. A controller without one does not
// choose its pods by labels.
func parseSelector(o *unstructured.Unstructured) labels.Selector {
	selector, err := workload.PodSelector(o.Object)
	switch {
	case err != nil:
		return nil
	case selector == nil:
		return labels.Everything()
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return parsed
}
