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

// maxTries is the number of attempts to change the workload in one reconciliation: during a rollout
// the workload often changes between the read and the write.
const maxTries = 5

// errStaleCache means that the decision was based on a stale cache.
var errStaleCache = errors.New("the cache is stale")

// actIfConfirmed changes the workload if the decision is the same on the workload of the API
// server and, for a resume, on its release and batches. With a stale cache, an existing hold would
// look like a pause by a person, and a new fail like an overruled one. Actions are rare, so the
// additional reads cost little.
//
// The API server answers Invalid if the workload has changed since the read; then the change is tried
// again. It also answers Invalid if a policy denies the patch; this error is returned.
func (r *Reconciler) actIfConfirmed(ctx context.Context, in Input, w *workload.Workload, action Action) error {
	if action == ActionResume {
		var err error
		if in, err = r.readRelease(ctx, in); err != nil {
			return err
		}
	}
	var invalid error
	var read string
	for range maxTries {
		current, err := r.readWorkload(ctx, w)
		if err != nil {
			return err
		}
		if invalid != nil && current.ResourceVersion == read {
			return invalid
		}
		in.Workload = workloadOf(current, in.ExcludedNodes).judging(in.Pods, in.Later)
		if Decide(in).Action != action {
			return errStaleCache
		}
		patch, err := patchIfUnchanged(current, action, in)
		if err != nil {
			return err
		}
		if invalid = r.patchWorkload(ctx, w, action, patch); !apierrs.IsInvalid(invalid) {
			return invalid
		}
		read = current.ResourceVersion
	}
	return errStaleCache
}

// patchIfUnchanged returns the patch of an action. It fails if the workload has
// changed in any way since it was read.
func patchIfUnchanged(w *workload.Workload, action Action, in Input) ([]byte, error) {
	ops := []workload.Operation{{Op: "test", Path: workload.Pointer("metadata", "resourceVersion"), Value: w.ResourceVersion}}
	write := holdOperations
	switch action {
	case ActionResume:
		return json.Marshal(append(ops, resumeOperations(w, in)...))
	case ActionSetDefenseStatus:
		return json.Marshal(append(ops, processedOperations(w, in.ChangeWorkload)...))
	case ActionMoveTraffic:
		write = moveTrafficOperations
	default:
	}
	hold, err := write(w, in, action)
	if err != nil {
		return nil, err
	}
	return json.Marshal(append(ops, hold...))
}

// readWorkload reads the workload from the API server.
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

// readRelease reads the release and its batches from the API server.
func (r *Reconciler) readRelease(ctx context.Context, in Input) (Input, error) {
	c := in.ChangeWorkload
	current, err := r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return in, fmt.Errorf("read ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	if current.UID != c.UID || current.DeletionTimestamp != nil {
		return in, errStaleCache
	}
	batches, err := r.client.AppV1alpha1().ChangePods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha1.VersionKey: c.Labels[v1alpha1.VersionKey]}.String(),
	})
	if err != nil {
		return in, fmt.Errorf("list ChangePods of %s/%s: %w", c.Namespace, c.Name, err)
	}
	in.ChangeWorkload, in.ChangePods = current, nil
	for i := range batches.Items {
		if p := &batches.Items[i]; metav1.IsControlledBy(p, c) {
			in.ChangePods = append(in.ChangePods, p)
		}
	}
	return in, nil
}

// patchWorkload patches the workload.
func (r *Reconciler) patchWorkload(ctx context.Context, w *workload.Workload, action Action, patch []byte) error {
	_, err := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Patch(ctx, w.Name,
		types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: holdManager})
	if err != nil {
		return fmt.Errorf("%s %s %s/%s: %w", action, w.Kind.Kind, w.Namespace, w.Name, err)
	}
	return nil
}
