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

// maxMessage and maxUser are the maximum lengths of a rollback's message and user, in bytes.
const (
	maxMessage = 1024
	maxUser    = 512
)

// newRollback returns the rollback for the workload's annotation.
func newRollback(in Input, decision Decision, target Target) v1alpha1.Rollback {
	message := decision.Message + "; the target is version " + target.Version + " because " + target.Proof
	return v1alpha1.Rollback{
		Kind:        decision.Kind,
		FromVersion: in.Release.Version,
		FromAttempt: in.Release.Attempt,
		ToVersion:   target.Version,
		Attempt:     in.Release.NextAttempt(),
		Times:       decision.Times,
		User:        decision.User,
		Message:     text.Truncate(message, maxMessage),
		Time:        metav1.NewTime(in.Now),
	}
}

// write patches the template, on condition that version, attempt and generation are
// unchanged (the generation reveals a template that the webhook has not seen). answered
// is false if the webhook did not add the new attempt. A dry run comes first, so that
// usually nothing is written then: a rollback without a new attempt is not a release of its
// own and would stay held. If the webhook misses only the second call, the template is
// written without a new attempt. The release that it becomes later has no record of the rollback, so it is judged
// like any other.
func (r *Reconciler) write(ctx context.Context, w *liveworkload.Workload, rollback v1alpha1.Rollback, target Target) (answered bool, err error) {
	body, err := patchOf(w, rollback, target)
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
		if release, known := v1alpha1.ReleaseOf(after.GetAnnotations()); !known || release.Attempt != rollback.Attempt {
			return false, nil
		}
	}
	return true, nil
}

// patchOf returns the JSON patch of a rollback.
func patchOf(w *liveworkload.Workload, rollback v1alpha1.Rollback, target Target) ([]byte, error) {
	value, err := json.Marshal(rollback)
	if err != nil {
		return nil, fmt.Errorf("encode the rollback: %w", err)
	}
	template, err := w.Kind.WithScalingOf(target.Template, w.RawTemplate)
	if err != nil {
		return nil, err
	}
	ops := append(unchanged(w.Workload),
		workload.Operation{Op: "test", Path: workload.Pointer("metadata", "generation"), Value: w.Generation},
		workload.Operation{Op: "replace", Path: workload.Pointer("spec", "template"), Value: template},
		workload.Operation{Op: "add", Path: workload.Annotation(v1alpha1.RollbackAnnotation), Value: string(value)},
	)
	return json.Marshal(append(ops, removeRequest(w.Workload)...))
}

// unchanged returns the test operations for the workload's identity and
// release.
func unchanged(w *workload.Workload) []workload.Operation {
	release, _ := v1alpha1.ReleaseOf(w.Annotations)
	return workload.UnchangedOperations(w.UID, release)
}

// removeRequest returns the operations that remove the rollback request, if it
// is still the one that was read.
func removeRequest(w *workload.Workload) []workload.Operation {
	raw, asked := w.Annotations[v1alpha1.RollbackRequestAnnotation]
	if !asked {
		return nil
	}
	path := workload.Annotation(v1alpha1.RollbackRequestAnnotation)
	return []workload.Operation{{Op: "test", Path: path, Value: raw}, {Op: "remove", Path: path}}
}

// drop removes a rollback request that cannot be executed, and reports why.
func (r *Reconciler) drop(ctx context.Context, w *workload.Workload, why string) error {
	body, err := json.Marshal(append(unchanged(w), removeRequest(w)...))
	if err != nil {
		return fmt.Errorf("build the patch that drops a rollback request: %w", err)
	}
	_, err = r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Patch(ctx, w.Name,
		types.JSONPatchType, body, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("drop the rollback request of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	r.reportDrop(ctx, w, why)
	return nil
}
