package workloadinformer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Over returns a context whose Watch uses informers that the caller runs, one
// per built-in kind. They hold *workload.Workload.
func Over(ctx context.Context, of func(workload.Kind) cache.SharedIndexInformer) context.Context {
	w := &Watch{watched: map[schema.GroupKind]*watched{}}
	for _, k := range workload.BuiltIn() {
		w.watched[k.GroupKind()] = &watched{kind: k, informer: of(k)}
	}
	return context.WithValue(ctx, key{}, w)
}
