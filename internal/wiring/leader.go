package wiring

import (
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/reconciler"
)

// PromoteKeys returns a PromoteFunc that enqueues the keys when the replica becomes
// the leader.
func PromoteKeys(keys ...types.NamespacedName) func(reconciler.Bucket, func(reconciler.Bucket, types.NamespacedName)) error {
	return func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		for _, key := range keys {
			enqueue(b, key)
		}
		return nil
	}
}
