// Package liveworkload reads the workload of a ChangeWorkload from the API
// server, for decisions that must not use a stale cache, and for its pod
// template, which caches omit.
package liveworkload

import (
	"context"
	"encoding/json"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Reader reads workloads.
type Reader struct {
	Client     dynamic.Interface
	Namespaces corelisters.NamespaceLister
	// Kind returns the kind of an apiVersion and kind; false if its workloads are not judged.
	Kind func(apiVersion, kind string) (workload.Kind, bool)
}

// Workload is the live state of a workload.
type Workload struct {
	*workload.Workload
	// RawTemplate is its pod template, including fields that our types do not have.
	RawTemplate json.RawMessage
	// Selector selects its pods.
	Selector *metav1.LabelSelector
	// Release is its current release; Known is false if the webhook has not set
	// it.
	Release v1alpha1.Release
	Known   bool
	// TemplateVersion is the version of its template. VersionRecorded: it is that of Release.
	TemplateVersion string
	VersionRecorded bool
}

// OptedIn reports whether a namespace is opted in, according to the cache.
func (r *Reader) OptedIn(namespace string) (bool, error) {
	ns, err := r.Namespaces.Get(namespace)
	if apierrs.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	return v1alpha1.OptedIn(ns) && ns.DeletionTimestamp == nil, nil
}

// Read returns the workload of a ChangeWorkload, or nil if its kind is not judged, it is
// deleted or terminating, or another workload has its name.
func (r *Reader) Read(ctx context.Context, c *v1alpha1.ChangeWorkload) (*Workload, error) {
	ref := c.Spec.WorkloadRef
	kind, ok := r.Kind(ref.APIVersion, ref.Kind)
	if !ok {
		return nil, nil
	}
	u, err := r.Client.Resource(kind.GroupVersionResource()).Namespace(c.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) || (err == nil && (u.GetUID() != ref.UID || u.GetDeletionTimestamp() != nil)) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", kind.Kind, c.Namespace, ref.Name, err)
	}
	return FromUnstructured(kind, u)
}

// FromUnstructured converts an object to a workload.
func FromUnstructured(kind workload.Kind, u *unstructured.Unstructured) (*Workload, error) {
	w, err := workload.FromUnstructured(kind, u)
	if err != nil {
		return nil, err
	}
	var spec struct {
		Template json.RawMessage `json:"template"`
	}
	raw, err := json.Marshal(u.Object["spec"])
	if err == nil {
		err = json.Unmarshal(raw, &spec)
	}
	if err != nil {
		return nil, fmt.Errorf("read the template of %s %s/%s: %w", kind.Kind, w.Namespace, w.Name, err)
	}
	out := &Workload{Workload: w, RawTemplate: spec.Template}
	if out.Selector, err = workload.PodSelector(u.Object); err != nil {
		return nil, fmt.Errorf("selector of %s %s/%s: %w", kind.Kind, w.Namespace, w.Name, err)
	}
	out.Release, out.Known = v1alpha1.ReleaseOf(w.Annotations)
	if out.TemplateVersion, err = workload.Version(kind, &w.Template); err != nil {
		return nil, err
	}
	out.VersionRecorded = out.Known && out.TemplateVersion == out.Release.Version
	return out, nil
}

// At reports whether the ChangeWorkload's release is the workload's current
// one.
func (w *Workload) At(c *v1alpha1.ChangeWorkload) bool {
	return w.Known && w.Release == c.Release()
}
