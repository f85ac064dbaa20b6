package callback

import (
	"context"

	"github.com/cenkalti/backoff/v5"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// maxOrders is the size of the LRU cache of releases.
const maxOrders = 1000

// release has the immutable fields of a ChangeWorkload that a verdict needs.
type release struct {
	namespace, name string
	uid             types.UID
	version         string
}

func releaseOf(w *v1alpha1.ChangeWorkload) release {
	return release{namespace: w.Namespace, name: w.Name, uid: w.UID, version: w.Spec.Reversion}
}

// findCached finds the batch with the node in the cached release of the order, without reading
// the ChangeWorkload. A replaced release has another UID, and a deleted one has no batches. If
// it returns no batch, the caller uses find.
func (r *receiver) findCached(ctx context.Context, v verdict) (release, *v1alpha1.ChangePod) {
	entry, ok := r.orders.Get(v.data.BizExecOrderID)
	if !ok || r.Batches == nil || v.check == altershield.CheckOrder {
		return release{}, nil
	}
	cached := entry.(release)
	return cached, r.awaitIndexed(ctx, v.data.NodeID, cached)
}

// awaitIndexed waits until the cache has the batch of the release with the node. It returns
// nil after indexTimeout.
func (r *receiver) awaitIndexed(ctx context.Context, node string, of release) *v1alpha1.ChangePod {
	ctx, cancel := context.WithTimeout(ctx, min(indexTimeout, r.RequestTimeout/nodeTimeoutDivisor))
	defer cancel()
	batch, err := backoff.Retry(ctx, func() (*v1alpha1.ChangePod, error) {
		if batch := r.Batches.ofNode(node); batch != nil && batch.Namespace == of.namespace && v1alpha1.OwnedBy(batch, of.uid) {
			return batch, nil
		}
		return nil, errUnknownNode
	}, backoff.WithBackOff(backoff.NewConstantBackOff(indexInterval)))
	if err != nil {
		return nil
	}
	return batch
}
