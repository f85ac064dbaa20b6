package callback

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// maxOrders is how many orders a process remembers the releases of; the one
// that was used longest ago is forgotten first.
const maxOrders = 1000

// release is what of a ChangeWorkload never changes, as far as a verdict needs it.
type release struct {
	namespace, name string
	uid             types.UID
	version         string
}

func releaseOf(w *v1alpha1.ChangeWorkload) release {
	return release{namespace: w.Namespace, name: w.Name, uid: w.UID, version: w.Spec.Reversion}
}

// recall finds the batch that has the node without reading a ChangeWorkload: of
// the release that had the order last. A release that has begun anew has
// another UID, and one that is gone has no batches. Whatever is not found like
// this, or could not be read, is looked for by gather.
func (r *receiver) recall(ctx context.Context, v verdict) (release, *v1alpha1.ChangePod) {
	known, ok := r.orders.Get(v.said.BizExecOrderID)
	if !ok || v.check == altershield.CheckOrder {
		return release{}, nil
	}
	of := known.(release)
	batches, err := r.batchesOf(ctx, of, byNode(v.said.NodeID))
	if err != nil || len(batches) == 0 {
		return release{}, nil
	}
	return of, &batches[0]
}
