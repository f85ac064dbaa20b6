package workload

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// touch updates the workload with a patch that changes nothing, so that it
// passes the webhook, if it is due. changed: the webhook did its work. A touch
// that changed nothing (the webhook does not answer, and its failurePolicy is
// Ignore) is due again after a growing pause, which again tells.
func (r *Reconciler) touch(ctx context.Context, w *workload.Workload, why Touch) (again time.Duration, changed bool, err error) {
	key := string(w.UID)
	if why == TouchNone {
		r.touches.Done(key)
		return 0, false, nil
	}
	due, next := r.touches.Due(key)
	if !due {
		return next, false, nil
	}
	after, err := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Patch(ctx, w.Name,
		types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: fieldManager})
	if apierrs.IsNotFound(err) {
		return 0, true, nil // its deletion is on its way to the cache
	} else if err != nil {
		return 0, false, fmt.Errorf("touch %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	// An unchanged object keeps its resourceVersion, but the cache may be
	// behind: compare what the webhook writes.
	changed = written(after) != written(w)
	r.touched.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", w.Kind.Kind),
		attribute.String("reason", string(why)), attribute.Bool("effective", changed)))
	if !changed {
		logging.FromContext(ctx).Warnw("the webhook of its kind did not see an update, so this workload is not guarded",
			"reason", why, "next try", next)
	}
	return next, changed, nil
}

// written is what the webhook writes on a workload.
func written(w metav1.Object) [3]string {
	return [3]string{w.GetLabels()[v1alpha1.VersionKey], w.GetAnnotations()[v1alpha1.VersionKey], w.GetAnnotations()[v1alpha1.AttemptAnnotation]}
}
