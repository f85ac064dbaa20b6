package workloadinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// WithInformers returns a context whose Watch uses informers that the caller
// runs, one per built-in kind that is not optional. They hold *workload.Workload. It is for tests.
func WithInformers(ctx context.Context, informerOf func(workload.Kind) cache.SharedIndexInformer) context.Context {
	w := &Watch{}
	for _, k := range workload.BuiltIn() {
		if k.Optional {
			continue
		}
		w.kinds.Put(k.GroupKind(), k, informerOf(k))
	}
	return context.WithValue(ctx, key{}, w)
}
