package lifecycle

import (
	"context"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// endPod stores that a pod has ended. A concurrent request for the pod is either
// committed before, or rejected.
func (e *Engine) endPod(ctx context.Context, cluster, uid string) error {
	if ended, err := e.Store.View(ctx).PodEnded(cluster, uid); err != nil || ended {
		return err
	}
	return e.Store.Write(ctx, func(tx store.Tx) error {
		if err := tx.LockPod(cluster, uid); err != nil {
			return err
		}
		return tx.AddEndedPod(cluster, uid, e.Clock.Now().UTC())
	})
}

// checkNotEnded returns ErrRevokeRequested if the pod of a request has ended. It locks
// the pod, so that endPod waits until the transaction has ended.
func checkNotEnded(tx store.Tx, r api.ApplicationRequest) error {
	if err := tx.LockPod(r.Cluster, r.PodUID); err != nil {
		return err
	}
	ended, err := tx.PodEnded(r.Cluster, r.PodUID)
	if err == nil && ended {
		return ErrRevokeRequested
	}
	return err
}
