package changeworkload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// tries is how often a hold, or its end, is tried at once: during a roll-out
// the status of the workload changes between our read and our write.
const maxTries = 5

// errBehind: what the caches said is not so any more.
var errStaleCache = errors.New("the caches are behind")

// confirm holds the workload, or ends a hold, if the decision stands on what
// the API server has. Both are rare, and a cache that is behind would do harm:
// a hold that is not seen yet would be taken for a person's pause, and a fail
// that is not seen yet for one that was overruled.
func (r *Reconciler) confirm(ctx context.Context, in Input, w *workload.Workload, action Action) error {
	if action == ActionResume {
		var err error
		if in, err = r.readRelease(ctx, in); err != nil {
			return err
		}
	}
	for n := 1; ; n++ {
		live, err := r.readWorkload(ctx, w)
		if err != nil {
			return err
		}
		in.Workload = workloadOf(live)
		if Decide(in).Action != action {
			return errStaleCache
		}
		patch, err := patchIfUnchanged(live, action, in)
		if err != nil {
			return err
		}
		if err := r.patchWorkload(ctx, w, action, patch); !apierrs.IsInvalid(err) || n == maxTries {
			return err
		}
	}
}

// unlessChanged is the patch of an action; it is refused when the workload has
// changed in any way since it was read.
func patchIfUnchanged(w *workload.Workload, action Action, in Input) ([]byte, error) {
	ops := []workload.Operation{{Op: "test", Path: workload.Pointer("metadata", "resourceVersion"), Value: w.ResourceVersion}}
	if action == ActionResume {
		return json.Marshal(append(ops, resumeOperations(w, in.ChangeWorkload)...))
	}
	hold, err := holdOperations(w, in.ChangeWorkload, in.Now)
	if err != nil {
		return nil, err
	}
	return json.Marshal(append(ops, hold...))
}

// live reads the workload from the API server.
func (r *Reconciler) readWorkload(ctx context.Context, w *workload.Workload) (*workload.Workload, error) {
	u, err := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	if u.GetUID() != w.UID || u.GetDeletionTimestamp() != nil {
		return nil, errStaleCache
	}
	return workload.FromUnstructured(w.Kind, u)
}

// reread reads the release and its batches from the API server.
func (r *Reconciler) readRelease(ctx context.Context, in Input) (Input, error) {
	c := in.ChangeWorkload
	live, err := r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return in, fmt.Errorf("read ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	if live.UID != c.UID || live.DeletionTimestamp != nil {
		return in, errStaleCache
	}
	batches, err := r.client.AppV1alpha1().ChangePods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha1.VersionKey: c.Labels[v1alpha1.VersionKey]}.String(),
	})
	if err != nil {
		return in, fmt.Errorf("list ChangePods of %s/%s: %w", c.Namespace, c.Name, err)
	}
	in.ChangeWorkload, in.ChangePods = live, nil
	for i := range batches.Items {
		if p := &batches.Items[i]; metav1.IsControlledBy(p, c) {
			in.ChangePods = append(in.ChangePods, p)
		}
	}
	return in, nil
}

// patch changes the workload.
func (r *Reconciler) patchWorkload(ctx context.Context, w *workload.Workload, action Action, patch []byte) error {
	_, err := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Patch(ctx, w.Name,
		types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("%s %s %s/%s: %w", action, w.Kind.Kind, w.Namespace, w.Name, err)
	}
	return nil
}
