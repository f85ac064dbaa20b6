// Package releaseindex knows which releases of a workload there were, and which
// of them succeeded, from their ChangeWorkloads and from the templates that are
// kept of them: a ChangeWorkload goes with the next Success, a kept template
// stays.
package releaseindex

import (
	"context"
	"fmt"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// liveTimeout bounds the question to the API server, so that it is answered
// within the timeoutSeconds of a webhook that had to ask.
const liveTimeout = 2 * time.Second

// Index answers from the cache, and asks the API server where the cache
// knows of no Success: a way back must not be refused because a cache is late.
type Index struct {
	Lister    listers.ChangeWorkloadLister
	Client    versioned.ChangeWorkloadsGetter
	Revisions appsv1.ControllerRevisionsGetter
}

// Succeeded says whether the version was a Success of the workload.
func (h *Index) Succeeded(ctx context.Context, w *workload.Workload, version string) (bool, error) {
	name := v1alpha1.ChangeWorkloadName(w.Name, version)
	if c, err := h.Lister.ChangeWorkloads(w.Namespace).Get(name); err == nil && succeeded(c, w, version) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	c, err := h.Client.ChangeWorkloads(w.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrs.IsNotFound(err):
		return false, fmt.Errorf("get ChangeWorkload %s/%s: %w", w.Namespace, name, err)
	case err == nil && succeeded(c, w, version):
		return true, nil
	case err == nil && of(c, w) && c.Spec.Reversion == version && c.Status.Phase == v1alpha1.WorkloadSuspend:
		return false, nil // it failed since, and what is kept of it is about to go
	}
	return h.kept(ctx, w, version)
}

// kept says whether the template of the version is kept: it succeeded, however
// long ago.
func (h *Index) kept(ctx context.Context, w *workload.Workload, version string) (bool, error) {
	name := savedtemplate.Name(w.Name, version)
	r, err := h.Revisions.ControllerRevisions(w.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("get ControllerRevision %s/%s: %w", w.Namespace, name, err)
	}
	k, ok := savedtemplate.Read(r, w.UID)
	return ok && k.Release.Version == version, nil
}

// Releases returns the ChangeWorkloads of the workload that the cache has.
func (h *Index) Releases(w *workload.Workload) []*v1alpha1.ChangeWorkload {
	all, err := h.Lister.ChangeWorkloads(w.Namespace).List(labels.SelectorFromSet(labels.Set{
		v1alpha1.DeploymentNameLabel: v1alpha1.LabelValue(w.Name),
	}))
	if err != nil {
		return nil // a lister over an informer's cache has no error to give
	}
	var own []*v1alpha1.ChangeWorkload
	for _, c := range all {
		if of(c, w) {
			own = append(own, c)
		}
	}
	return own
}

func succeeded(c *v1alpha1.ChangeWorkload, w *workload.Workload, version string) bool {
	return of(c, w) && c.Spec.Reversion == version && c.Status.Phase == v1alpha1.WorkloadSuccess &&
		c.DeletionTimestamp == nil
}

// of says whether the ChangeWorkload is about this workload, and not about
// an earlier one of its name or one of another kind.
func of(c *v1alpha1.ChangeWorkload, w *workload.Workload) bool {
	return w.Kind.Is(c.Spec.WorkloadRef.APIVersion, c.Spec.WorkloadRef.Kind) && c.Spec.WorkloadRef.UID == w.UID
}
