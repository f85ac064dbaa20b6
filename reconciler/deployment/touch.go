package deployment

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// touch updates the Deployment with a patch that changes nothing, so that it
// passes the webhook, if it is due. changed: the webhook did its work. A touch
// that changed nothing (the webhook does not answer, and its failurePolicy is
// Ignore) is due again after a growing pause, which again tells.
func (r *Reconciler) touch(ctx context.Context, d *appsv1.Deployment, why Touch) (again time.Duration, changed bool, err error) {
	key := string(d.UID)
	if why == TouchNone {
		r.touches.Done(key)
		return 0, false, nil
	}
	due, next := r.touches.Due(key)
	if !due {
		return next, false, nil
	}
	after, err := r.kube.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, []byte("{}"),
		metav1.PatchOptions{FieldManager: fieldManager})
	if apierrs.IsNotFound(err) {
		return 0, true, nil // its deletion is on its way to the cache
	} else if err != nil {
		return 0, false, fmt.Errorf("touch Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	// An unchanged object keeps its resourceVersion, but the cache may be
	// behind: compare what the webhook writes.
	changed = written(after) != written(d)
	r.touched.Add(ctx, 1, metric.WithAttributes(
		attribute.String("reason", string(why)), attribute.Bool("effective", changed)))
	if !changed {
		logging.FromContext(ctx).Warnw("the webhook mdeployment.kb.io did not see an update, so this Deployment is not guarded",
			"reason", why, "next try", next)
	}
	return next, changed, nil
}

// written is what the webhook writes on a Deployment.
func written(d *appsv1.Deployment) [3]string {
	return [3]string{d.Labels[v1alpha1.VersionKey], d.Annotations[v1alpha1.VersionKey], d.Annotations[v1alpha1.AttemptAnnotation]}
}

// carriers counts the ReplicaSets of the Deployment that carry a version.
func carriers(replicaSets appslisters.ReplicaSetLister, d *appsv1.Deployment, version string) (int, error) {
	all, err := replicaSets.ReplicaSets(d.Namespace).List(labels.Everything())
	if err != nil {
		return 0, fmt.Errorf("list ReplicaSets: %w", err)
	}
	n := 0
	for _, rs := range all {
		if version != "" && rs.Annotations[v1alpha1.VersionKey] == version && metav1.IsControlledBy(rs, d) {
			n++
		}
	}
	return n, nil
}
