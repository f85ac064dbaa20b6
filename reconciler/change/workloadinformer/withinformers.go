package workloadinformer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// WithInformers returns a context whose Watch uses informers that the caller
// runs, one per built-in kind that is not optional. They hold *workload.Workload.
func WithInformers(ctx context.Context, informerOf func(workload.Kind) cache.SharedIndexInformer) context.Context {
	w := &Watch{watched: map[schema.GroupKind]*watched{}}
	for _, k := range workload.BuiltIn() {
		if k.Optional {
			continue
		}
		w.watched[k.GroupKind()] = &watched{kind: k, informer: informerOf(k)}
	}
	return context.WithValue(ctx, key{}, w)
}
