// Package releaseindex looks up the releases of a workload and whether they succeeded.
// It reads ChangeWorkloads and saved templates: a ChangeWorkload is deleted after the
// next success, a saved template stays.
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

// requestTimeout limits requests to the API server, so that they fit the
// timeoutSeconds of the webhook.
const requestTimeout = 2 * time.Second

// Index reads the cache first, and the API server if the cache has no success: a
// stale cache must not cause the denial of a rollback.
type Index struct {
	Lister    listers.ChangeWorkloadLister
	Client    versioned.ChangeWorkloadsGetter
	Revisions appsv1.ControllerRevisionsGetter
}

// Succeeded reports whether the version succeeded with pods in the workload.
func (i *Index) Succeeded(ctx context.Context, w *workload.Workload, version string) (bool, error) {
	name := v1alpha1.ChangeWorkloadName(w.Name, version)
	if c, err := i.Lister.ChangeWorkloads(w.Namespace).Get(name); err == nil && succeeded(c, w, version) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c, err := i.Client.ChangeWorkloads(w.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrs.IsNotFound(err):
		return false, fmt.Errorf("get ChangeWorkload %s/%s: %w", w.Namespace, name, err)
	case err == nil && succeeded(c, w, version):
		return true, nil
	case err == nil && isOf(c, w) && c.Spec.Reversion == version && c.CountsAsFailed():
		return false, nil // it failed since; its saved template will be deleted
	}
	return i.saved(ctx, w, version)
}

// saved reports whether the template of the version is saved, which means that the
// version succeeded at some time. The name and annotations of a ControllerRevision do not
// show that it has the template of the version, so the version is computed.
func (i *Index) saved(ctx context.Context, w *workload.Workload, version string) (bool, error) {
	name := savedtemplate.Name(w.Name, version)
	r, err := i.Revisions.ControllerRevisions(w.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("get ControllerRevision %s/%s: %w", w.Namespace, name, err)
	}
	k, ok := savedtemplate.Read(r, w.UID)
	if !ok || k.Release.Version != version {
		return false, nil
	}
	template, err := k.PodTemplate(w.Kind)
	if err != nil {
		return false, nil //nolint:nilerr // no template that we saved
	}
	computed, err := workload.Version(w.Kind, template)
	return computed == version, err
}

// Releases returns the cached ChangeWorkloads of the workload.
func (i *Index) Releases(w *workload.Workload) []*v1alpha1.ChangeWorkload {
	all, err := i.Lister.ChangeWorkloads(w.Namespace).List(labels.SelectorFromSet(labels.Set{
		v1alpha1.DeploymentNameLabel: v1alpha1.LabelValue(w.Name),
	}))
	if err != nil {
		return nil // a lister of an informer returns no error
	}
	var own []*v1alpha1.ChangeWorkload
	for _, c := range all {
		if isOf(c, w) {
			own = append(own, c)
		}
	}
	return own
}

func succeeded(c *v1alpha1.ChangeWorkload, w *workload.Workload, version string) bool {
	return isOf(c, w) && c.Spec.Reversion == version && c.SucceededWithPods() && c.DeletionTimestamp == nil
}

// isOf reports whether the ChangeWorkload belongs to this workload, and not to a
// deleted one of the same name or one of another kind.
func isOf(c *v1alpha1.ChangeWorkload, w *workload.Workload) bool {
	return w.Kind.Is(c.Spec.WorkloadRef.APIVersion, c.Spec.WorkloadRef.Kind) && c.Spec.WorkloadRef.UID == w.UID
}
