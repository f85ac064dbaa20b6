package rollback

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

// maxMessage is how many bytes the message of a record may have.
const maxMessage = 1024

// recordOf returns what the workload will say about the rollback.
func recordOf(s Situation, cause Cause, target Target) v1alpha1.Rollback {
	message := cause.Message + "; version " + target.Version + " is taken because " + target.Proof
	return v1alpha1.Rollback{
		Kind:        cause.Kind,
		FromVersion: s.Release.Version,
		FromAttempt: s.Release.Attempt,
		ToVersion:   target.Version,
		Attempt:     s.Release.Attempt + 1,
		Times:       cause.Times,
		User:        cause.User,
		Message:     text.Cut(message, maxMessage),
		Time:        metav1.NewTime(s.Now),
	}
}

// write writes the template, on condition that nothing has changed: neither
// version and attempt, nor the generation, which tells of a template that the
// webhook has not seen. It asks first without effect (a dry run): answered is
// false when the webhook did not name the release that it will be, and then
// nothing is written, because a rollback that the webhook does not know is no
// release of its own and stays held.
func (r *Reconciler) write(ctx context.Context, w *liveworkload.Workload, record v1alpha1.Rollback, target Target) (answered bool, err error) {
	body, err := patchOf(w, record, target)
	if err != nil {
		return false, err
	}
	client := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace)
	for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
		after, err := client.Patch(ctx, w.Name, types.JSONPatchType, body,
			metav1.PatchOptions{FieldManager: fieldManager, DryRun: dryRun})
		if err != nil {
			return false, fmt.Errorf("roll %s %s/%s back to version %s: %w", w.Kind.Kind, w.Namespace, w.Name, target.Version, err)
		}
		if release, known := v1alpha1.ReleaseOf(after.GetAnnotations()); !known || release.Attempt != record.Attempt {
			return false, nil
		}
	}
	return true, nil
}

// patchOf returns the JSON patch of a rollback.
func patchOf(w *liveworkload.Workload, record v1alpha1.Rollback, target Target) ([]byte, error) {
	said, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("record the rollback: %w", err)
	}
	ops := append(unchanged(w.Workload),
		workload.Operation{Op: "test", Path: workload.Pointer("metadata", "generation"), Value: w.Generation},
		workload.Operation{Op: "replace", Path: workload.Pointer("spec", "template"), Value: target.Template},
		workload.Operation{Op: "add", Path: workload.Annotation(v1alpha1.RollbackAnnotation), Value: string(said)},
	)
	return json.Marshal(append(ops, unasked(w.Workload)...))
}

// unchanged are the tests that the workload still is this one and at this release.
func unchanged(w *workload.Workload) []workload.Operation {
	release, _ := v1alpha1.ReleaseOf(w.Annotations)
	return workload.StillAt(w.UID, release)
}

// unasked takes the request away, if it is still the one that was read.
func unasked(w *workload.Workload) []workload.Operation {
	raw, asked := w.Annotations[v1alpha1.RollbackRequestAnnotation]
	if !asked {
		return nil
	}
	path := workload.Annotation(v1alpha1.RollbackRequestAnnotation)
	return []workload.Operation{{Op: "test", Path: path, Value: raw}, {Op: "remove", Path: path}}
}

// drop takes a request away that is not carried out, and says why.
func (r *Reconciler) drop(ctx context.Context, w *workload.Workload, why string) error {
	body, err := json.Marshal(append(unchanged(w), unasked(w)...))
	if err != nil {
		return fmt.Errorf("drop a request: %w", err)
	}
	_, err = r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Patch(ctx, w.Name,
		types.JSONPatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("drop the request to roll %s %s/%s back: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	r.announceDrop(ctx, w, why)
	return nil
}
