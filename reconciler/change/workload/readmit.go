package workload

import (
	"context"
	"fmt"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// readmit sends an empty patch of the workload through the webhook, if that is
// due. changed: the webhook added its label and annotations. If it did not (it
// is unavailable and its failurePolicy is Ignore), the next readmission is due after
// retryAfter, which grows.
func (r *Reconciler) readmit(ctx context.Context, w *workload.Workload, why Readmission) (retryAfter time.Duration, changed bool, err error) {
	key := string(w.UID)
	if why == ReadmissionNone {
		r.readmissions.Done(key)
		return 0, false, nil
	}
	due, next := r.readmissions.TakeDue(key)
	if !due {
		return next, false, nil
	}
	after, err := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Patch(ctx, w.Name,
		types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldManager: fieldManager})
	if apierrs.IsNotFound(err) {
		return 0, true, nil // the event of its deletion reconciles again
	} else if err != nil {
		return 0, false, fmt.Errorf("readmit %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	// An unchanged object keeps its resourceVersion, but the cache may be
	// stale: compare the fields that the webhook writes.
	changed = written(after) != written(w)
	result := "unchanged"
	if changed {
		result = "changed"
	}
	r.readmitted.Add(ctx, 1, w.Kind.Kind, string(why), result)
	if !changed {
		logging.FromContext(ctx).Warnw("the webhook wrote no new version at a readmission of this workload: if it was not called, releases of the workload are not judged",
			"reason", why, "next try", next)
	}
	return next, changed, nil
}

// written returns the values that the webhook writes on a workload.
func written(w metav1.Object) [3]string {
	return [3]string{w.GetLabels()[v1alpha1.VersionKey], w.GetAnnotations()[v1alpha1.VersionKey], w.GetAnnotations()[v1alpha1.AttemptAnnotation]}
}
