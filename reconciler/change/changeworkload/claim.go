package changeworkload

import (
	"context"
	"fmt"
	"sync"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
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
	var failed []string
	if check != nil {
		if failed, err = r.failedVersionsOf(w, in.ChangeWorkload.Release()); err != nil {
			return err
		}
	}
	judges := judgesOf(in, check, failed)
	at := positions(in, batches)
	confirm := sync.OnceValue(func() error { return r.confirmExists(ctx, in.ChangeWorkload) })
	for i, pods := range batches {
		cp := newChangePod(in.ChangeWorkload, at[i], pods, in.Now)
		cp.Spec.Judges = judges
		releasetrace.Join(cp, in.ChangeWorkload)
		if err := r.createChangePod(ctx, cp, confirm); err != nil {
			return fmt.Errorf("create ChangePod %s/%s: %w", cp.Namespace, cp.Name, err)
		}
	}
	return nil
}

// createChangePod creates a ChangePod. If an existing ChangePod has the name, the owner of the
// existing one decides:
//
//   - The same ChangeWorkload: the cache is stale, which is an error.
//   - A ChangeWorkload that was deleted: the existing ChangePod is deleted, too. The garbage
//     collector may need minutes, in which a rollback would not be judged.
//   - None (the ChangeWorkload was deleted without it), or an object of a user: the existing
//     ChangePod stays, and the next number is used.
//
// confirm returns an error unless the API server has the ChangeWorkload of cp. Without this check, a
// reconciler with a stale cache would delete the ChangePod of a newer ChangeWorkload.
func (r *Reconciler) createChangePod(ctx context.Context, cp *v1alpha1.ChangePod, confirm func() error) error {
	all, own := r.client.AppV1alpha1().ChangePods(cp.Namespace), metav1.GetControllerOfNoCopy(cp)
	for n := v1alpha1.ChangePodIndex(cp.Name); ; {
		cp.Name = v1alpha1.ChangePodName(cp.Spec.ChangeWorkloadID, n)
		_, err := all.Create(ctx, cp, metav1.CreateOptions{FieldManager: fieldManager})
		if !apierrs.IsAlreadyExists(err) {
			return err
		}
		existing, getErr := all.Get(ctx, cp.Name, metav1.GetOptions{})
		if getErr != nil {
			return err
		}
		owner := metav1.GetControllerOfNoCopy(existing)
		switch {
		case owner == nil || owner.Kind != own.Kind || existing.DeletionTimestamp != nil:
			n++
			continue
		case owner.UID == own.UID:
			return err
		}
		if err := confirm(); err != nil {
			return err
		}
		err = all.Delete(ctx, existing.Name, *metav1.NewPreconditionDeleteOptions(string(existing.UID)))
		if err != nil && !apierrs.IsNotFound(err) {
			return err
		}
		logging.FromContext(ctx).Infow("deleted the ChangePod of a deleted ChangeWorkload", "changePod", existing.Name, "owner", owner.UID)
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
