package changeworkload

import (
	"context"
	"fmt"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// createBatches claims pods into ChangePods.
func (r *Reconciler) createBatches(ctx context.Context, in Input, w *workload.Workload, batches [][]v1alpha1.PodSummary) error {
	if len(batches) == 0 {
		return nil
	}
	check, err := r.metricCheck(w)
	if err != nil {
		return err
	}
	judges := judgesOf(in, check)
	at := positions(in, batches)
	confirm := sync.OnceValue(func() error { return r.confirmExists(ctx, in.ChangeWorkload) })
	for i, pods := range batches {
		cp := newChangePod(in.ChangeWorkload, at[i], pods, in.Now)
		cp.Spec.Judges = judges
		if err := r.createChangePod(ctx, cp, confirm); err != nil {
			return fmt.Errorf("create ChangePod %s/%s: %w", cp.Namespace, cp.Name, err)
		}
	}
	return nil
}

// createChangePod creates a ChangePod. If another one has its name, it depends on the
// owner of that:
//
//   - The same ChangeWorkload: the cache is stale.
//   - A ChangeWorkload that was deleted: it is deleted, too. The garbage collector may
//     need minutes, in which a rollback would not be judged.
//   - None (the ChangeWorkload was deleted without it), or an object of a user: it keeps
//     its name, and the next number is used.
//
// confirm returns an error unless the ChangeWorkload exists: if it is the one that was
// deleted, the other ChangePod is current.
func (r *Reconciler) createChangePod(ctx context.Context, cp *v1alpha1.ChangePod, confirm func() error) error {
	all, own := r.client.AppV1alpha1().ChangePods(cp.Namespace), metav1.GetControllerOfNoCopy(cp)
	for n := v1alpha1.ChangePodIndex(cp.Name); ; {
		cp.Name = v1alpha1.ChangePodName(cp.Spec.ChangeWorkloadID, n)
		_, err := all.Create(ctx, cp, metav1.CreateOptions{FieldManager: fieldManager})
		if !apierrs.IsAlreadyExists(err) {
			return err
		}
		there, getErr := all.Get(ctx, cp.Name, metav1.GetOptions{})
		if getErr != nil {
			return err
		}
		owner := metav1.GetControllerOfNoCopy(there)
		switch {
		case owner == nil || owner.Kind != own.Kind || there.DeletionTimestamp != nil:
			n++
			continue
		case owner.UID == own.UID:
			return err
		}
		if err := confirm(); err != nil {
			return err
		}
		err = all.Delete(ctx, there.Name, *metav1.NewPreconditionDeleteOptions(string(there.UID)))
		if err != nil && !apierrs.IsNotFound(err) {
			return err
		}
		logging.FromContext(ctx).Infow("deleted the ChangePod of a deleted ChangeWorkload", "changePod", there.Name, "owner", owner.UID)
	}
}

// confirmExists returns an error unless the API server has the ChangeWorkload.
func (r *Reconciler) confirmExists(ctx context.Context, c *v1alpha1.ChangeWorkload) error {
	live, err := r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err == nil && live.UID != c.UID {
		err = errStaleCache
	}
	return err
}
