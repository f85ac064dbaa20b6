// Package releasefinder finds the release of a pod and the pods of a release
// through the object that a workload's controller creates for each template: a
// ReplicaSet or a ControllerRevision. It reads caches only.
//
// The two differ. The annotations of the newest ReplicaSet follow those of its
// workload. Those of a ControllerRevision never change: if a template is
// applied again, they name an old attempt, and if the revision predates the
// opt-in of its namespace, they are missing. So a ControllerRevision is
// identified by its template.
//
// The pods of a Knative Service are found through the ReplicaSets of the Deployments of its
// Revisions. Serving copies the annotations of the template to all of them.
package releasefinder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	revisioninformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// replicaSet is a kind that owns pods but is not a workload.
var replicaSet = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// Finder finds releases and pods. Its indexers have the index ByController.
type Finder struct {
	workloads                    *workloadinformer.Watch
	replicaSets, revisions, pods cache.Indexer
}

// New returns a Finder over the shared informers. It must be called before they
// start, because it sets the transform of ControllerRevisions and adds indexes.
func New(ctx context.Context) (*Finder, error) {
	replicaSets := replicasetinformer.Get(ctx).Informer()
	revisions := revisioninformer.Get(ctx).Informer()
	pods := podinformer.Get(ctx).Informer()
	if err := revisions.SetTransform(Trim); err != nil {
		return nil, err
	}
	for _, in := range []cache.SharedIndexInformer{replicaSets, revisions, pods} {
		if err := Index(in); err != nil {
			return nil, err
		}
	}
	return &Finder{
		workloads:   workloadinformer.Get(ctx),
		replicaSets: replicaSets.GetIndexer(), revisions: revisions.GetIndexer(), pods: pods.GetIndexer(),
	}, nil
}

// ReleaseOfPod returns the release of a pod and its workload; false if they are
// not known (yet).
func (f *Finder) ReleaseOfPod(p *corev1.Pod) (v1alpha1.WorkloadRef, v1alpha1.Release, bool) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return v1alpha1.WorkloadRef{}, v1alpha1.Release{}, false
	}
	if owner.Kind == replicaSet.Kind && owner.APIVersion == replicaSet.GroupVersion().String() {
		return f.ofReplicaSet(p.Namespace, owner)
	}
	w := f.workloads.ControllerOf(p)
	if w == nil || w.Kind.Revisions != workload.ControllerRevisions {
		return v1alpha1.WorkloadRef{}, v1alpha1.Release{}, false
	}
	all, err := Owned[*appsv1.ControllerRevision](f.revisions, w.UID)
	if err != nil {
		return v1alpha1.WorkloadRef{}, v1alpha1.Release{}, false // impossible: New adds the index
	}
	release, known := releaseOf(all, w, p)
	return refOf(owner), release, known
}

// HasVersion reports whether a pod that a workload owns directly has a version: that of its ControllerRevision's
// template or, if no ControllerRevision has such a template, that of its release. The two differ if the webhook missed
// the template: the annotations of the ControllerRevision are those of the template before.
func (f *Finder) HasVersion(w *workload.Workload, p *corev1.Pod, version string) bool {
	all, err := Owned[*appsv1.ControllerRevision](f.revisions, w.UID)
	hasTemplate := func(r *appsv1.ControllerRevision) bool { return r.Annotations[ComputedKey] == version }
	ofTemplate := slices.ContainsFunc(all, hasTemplate)
	return err == nil && slices.ContainsFunc(all, func(r *appsv1.ControllerRevision) bool {
		release, known := releaseOfRevision(r, all, w)
		return workload.PodOfRevision(p, r.Name) && (hasTemplate(r) || !ofTemplate && known && release.Version == version)
	})
}

func (f *Finder) ofReplicaSet(namespace string, ref *metav1.OwnerReference) (v1alpha1.WorkloadRef, v1alpha1.Release, bool) {
	obj, _, err := f.replicaSets.GetByKey(cache.ObjectName{Namespace: namespace, Name: ref.Name}.String())
	rs, ok := obj.(*appsv1.ReplicaSet)
	if err != nil || !ok || rs.UID != ref.UID {
		return v1alpha1.WorkloadRef{}, v1alpha1.Release{}, false
	}
	owner := metav1.GetControllerOfNoCopy(rs)
	if owner == nil {
		return v1alpha1.WorkloadRef{}, v1alpha1.Release{}, false
	}
	siblings, err := Owned[*appsv1.ReplicaSet](f.replicaSets, owner.UID)
	if err != nil {
		return v1alpha1.WorkloadRef{}, v1alpha1.Release{}, false // impossible: New adds the index
	}
	of, ok := f.WorkloadOf(rs)
	release, known := f.releaseAmong(rs, siblings)
	return of, release, ok && known
}

// WorkloadOf returns the workload of a ReplicaSet; false if it has none, or if that is a Knative
// Service that is not cached.
func (f *Finder) WorkloadOf(rs *appsv1.ReplicaSet) (v1alpha1.WorkloadRef, bool) {
	owner := metav1.GetControllerOfNoCopy(rs)
	if owner == nil {
		return v1alpha1.WorkloadRef{}, false
	}
	if d := f.workloads.ControllerOf(rs); d != nil && d.OfKnativeService() {
		return f.workloads.ServiceOf(d)
	}
	return refOf(owner), true
}

// releaseAmong returns the release of a cached ReplicaSet; all are those of its owner. The Deployment of a Revision has
// several if Serving changed its own parts of it, such as queue-proxy. All have the release: a Revision cannot
// change its template.
func (f *Finder) releaseAmong(rs *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) (v1alpha1.Release, bool) {
	if d := f.workloads.ControllerOf(rs); d != nil && d.OfKnativeService() {
		return v1alpha1.ReleaseOf(rs.Annotations)
	}
	return releaseOfReplicaSet(rs, all)
}

// releaseOfReplicaSet returns the release of a cached ReplicaSet; all are the ReplicaSets of its workload.
func releaseOfReplicaSet(rs *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) (v1alpha1.Release, bool) {
	return savedtemplate.ReleaseOf(rs, all, func(o *appsv1.ReplicaSet) string { return o.Annotations[ComputedKey] })
}

// Pods returns the pods of a release of a workload, sorted by revision and
// name.
func (f *Finder) Pods(w *workload.Workload, release v1alpha1.Release) ([]*corev1.Pod, error) {
	if w.Kind.Revisions != workload.ControllerRevisions {
		return f.podsOfReplicaSets(w, release)
	}
	revisions, err := Owned[*appsv1.ControllerRevision](f.revisions, w.UID)
	if err != nil {
		return nil, err
	}
	pods, err := Owned[*corev1.Pod](f.pods, w.UID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		of, known := releaseOf(revisions, w, p)
		return !known || of != release
	}), nil
}

// ReplicaSets returns the ReplicaSets of a release of a workload, sorted by name; none if its kind
// has none.
func (f *Finder) ReplicaSets(w *workload.Workload, release v1alpha1.Release) ([]*appsv1.ReplicaSet, error) {
	owners := []types.UID{w.UID}
	if w.Kind.Revisions == workload.KnativeRevisions {
		owners = nil
		for _, d := range f.workloads.Deployments(w) {
			owners = append(owners, d.UID)
		}
	}
	var out []*appsv1.ReplicaSet
	for _, owner := range owners {
		all, err := Owned[*appsv1.ReplicaSet](f.replicaSets, owner)
		if err != nil {
			return nil, err
		}
		for _, rs := range all {
			if of, known := f.releaseAmong(rs, all); known && of == release {
				out = append(out, rs)
			}
		}
	}
	return out, nil
}

func (f *Finder) podsOfReplicaSets(w *workload.Workload, release v1alpha1.Release) ([]*corev1.Pod, error) {
	sets, err := f.ReplicaSets(w, release)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, rs := range sets {
		pods, err := Owned[*corev1.Pod](f.pods, rs.UID)
		if err != nil {
			return nil, err
		}
		out = append(out, pods...)
	}
	return out, nil
}

// CountRevisions returns how many revisions of a workload have the version. It also counts the
// ControllerRevision of the current template: if a former template is applied again while the webhook is
// unreachable, this is an old one, with the annotations of its old attempt. newest is when the newest ReplicaSet or
// ControllerRevision was created that has the version in its annotations; zero if there is none.
func (f *Finder) CountRevisions(w *workload.Workload, version string) (n int, newest time.Time, err error) {
	if version == "" {
		return 0, newest, nil
	}
	created := func(o metav1.Object) {
		if at := o.GetCreationTimestamp().Time; o.GetAnnotations()[v1alpha1.VersionKey] == version && at.After(newest) {
			newest = at
		}
	}
	count := func(v string) {
		if v == version {
			n++
		}
	}
	if w.Kind.Revisions == workload.KnativeRevisions {
		for _, d := range f.workloads.Deployments(w) {
			count(d.Annotations[v1alpha1.VersionKey])
		}
		return n, newest, nil
	}
	if w.Kind.Revisions == workload.ReplicaSets {
		sets, err := Owned[*appsv1.ReplicaSet](f.replicaSets, w.UID)
		for _, rs := range sets {
			count(rs.Annotations[v1alpha1.VersionKey])
			created(rs)
		}
		return n, newest, err
	}
	current, err := workload.Version(w.Kind, &w.Template)
	if err != nil {
		return 0, newest, err
	}
	revisions, err := Owned[*appsv1.ControllerRevision](f.revisions, w.UID)
	for _, r := range revisions {
		created(r)
		if computed := r.Annotations[ComputedKey]; computed == current {
			n++
		} else {
			count(cmp.Or(r.Annotations[v1alpha1.VersionKey], computed))
		}
	}
	return n, newest, err
}

// releaseOf returns the release of a pod that a workload owns directly; all are
// the workload's revisions.
func releaseOf(all []*appsv1.ControllerRevision, w *workload.Workload, p *corev1.Pod) (v1alpha1.Release, bool) {
	at := slices.IndexFunc(all, func(r *appsv1.ControllerRevision) bool { return workload.PodOfRevision(p, r.Name) })
	if at < 0 {
		return v1alpha1.Release{}, false
	}
	return releaseOfRevision(all[at], all, w)
}

// releaseOfRevision returns the release of one of a workload's revisions.
func releaseOfRevision(r *appsv1.ControllerRevision, all []*appsv1.ControllerRevision, w *workload.Workload) (v1alpha1.Release, bool) {
	current, hasRelease := v1alpha1.ReleaseOf(w.Annotations)
	if hasRelease && r.Annotations[ComputedKey] == current.Version {
		return current, true
	}
	written, known := v1alpha1.ReleaseOf(r.Annotations)
	if !known {
		// Created before its namespace was opted in.
		computed := r.Annotations[ComputedKey]
		return v1alpha1.Release{Version: computed}, computed != ""
	}
	// Admission may have computed another version of the template, because the
	// API server can know defaults that its controllers do not. A revision that
	// the webhook missed also has the version of another one.
	other := slices.ContainsFunc(all, func(o *appsv1.ControllerRevision) bool {
		return o.Annotations[ComputedKey] == current.Version
	})
	switch {
	case !hasRelease || written.Version != current.Version:
		return written, true
	case !other:
		return current, true
	case written == current:
		return v1alpha1.Release{}, false // missed, and the webhook has not added its release yet
	default:
		return written, true
	}
}

func refOf(o *metav1.OwnerReference) v1alpha1.WorkloadRef {
	return v1alpha1.WorkloadRef{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}
}

// ByController is the name of an index: the UID of an object's controller.
const ByController = "controller"

// Index adds the index ByController to an informer if it is missing.
func Index(in cache.SharedIndexInformer) error {
	if _, ok := in.GetIndexer().GetIndexers()[ByController]; ok {
		return nil
	}
	return in.AddIndexers(cache.Indexers{ByController: controllerOf})
}

// controllerOf is the index function of ByController.
func controllerOf(obj any) ([]string, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil, nil
	}
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return []string{string(ref.UID)}, nil
	}
	return nil, nil
}

// Owned returns the objects that a UID controls, sorted by name. An index has
// no order, so lists derived from it would differ at every status write.
func Owned[T metav1.Object](in cache.Indexer, uid types.UID) ([]T, error) {
	objects, err := in.ByIndex(ByController, string(uid))
	if err != nil {
		return nil, fmt.Errorf("look up objects by controller: %w", err)
	}
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}
