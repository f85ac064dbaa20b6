package workloadinformer

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Get returns a workload, or nil if it is not cached or its kind is not
// watched. The result is shared and must not be changed.
func (w *Watch) Get(gk schema.GroupKind, namespace, name string) *workload.Workload {
	found, _ := w.kinds.Object(gk, namespace, name).(*workload.Workload)
	return found
}

// Find returns the referenced workload, or nil. A workload with the same name
// but another UID does not match.
func (w *Watch) Find(namespace string, ref v1alpha1.WorkloadRef) *workload.Workload {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil
	}
	found := w.Get(gv.WithKind(ref.Kind).GroupKind(), namespace, ref.Name)
	if found == nil || found.UID != ref.UID {
		return nil
	}
	return found
}

// ControllerOf returns the workload that controls an object, or nil.
func (w *Watch) ControllerOf(o metav1.Object) *workload.Workload {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return nil
	}
	return w.Find(o.GetNamespace(), v1alpha1.WorkloadRef{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID,
	})
}

// byKnativeService is the name of an index: the UID of the Knative Service of a Deployment.
const byKnativeService = "knative-service"

// knativeServiceOf is the index function of byKnativeService.
func knativeServiceOf(obj any) ([]string, error) {
	if w, ok := obj.(*workload.Workload); ok && w.OfKnativeService() {
		_, uid, _ := workload.KnativeServiceOf(w)
		return []string{string(uid)}, nil
	}
	return nil, nil
}

// Deployments returns the Deployments of a Knative Service, one of each Revision, sorted by name.
func (w *Watch) Deployments(service *workload.Workload) []*workload.Workload {
	in := w.kinds.Get(workload.Deployment.GroupKind())
	if in == nil {
		return nil
	}
	objects, err := in.GetIndexer().ByIndex(byKnativeService, string(service.UID))
	if err != nil {
		return nil // an informer of WithInformers may have no index
	}
	var out []*workload.Workload
	for _, obj := range objects {
		if d, ok := obj.(*workload.Workload); ok && d.Namespace == service.Namespace {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b *workload.Workload) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ServiceOf returns a reference to the Knative Service of a Deployment; ok is false if the object
// is no such Deployment or the Service does not exist.
func (w *Watch) ServiceOf(deployment *workload.Workload) (ref v1alpha1.WorkloadRef, ok bool) {
	if deployment == nil || !deployment.OfKnativeService() {
		return v1alpha1.WorkloadRef{}, false
	}
	kind := workload.KnativeService
	ref = v1alpha1.WorkloadRef{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}
	ref.Name, ref.UID, _ = workload.KnativeServiceOf(deployment)
	return ref, w.Find(deployment.Namespace, ref) != nil
}

// Kind returns the kind of an apiVersion and kind, if it is watched.
func (w *Watch) Kind(apiVersion, kind string) (workload.Kind, bool) {
	for k := range w.kinds.All() {
		if k.Is(apiVersion, kind) {
			return k, true
		}
	}
	return workload.Kind{}, false
}

// All returns the workloads of all kinds, sorted by kind, namespace and name.
func (w *Watch) All() []*workload.Workload {
	var all []*workload.Workload
	for _, in := range w.kinds.All() {
		for _, obj := range in.GetIndexer().List() {
			if one, ok := obj.(*workload.Workload); ok {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b *workload.Workload) int {
		return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func isWorkload(obj any) bool {
	_, ok := wiring.Object[*workload.Workload](obj)
	return ok
}
