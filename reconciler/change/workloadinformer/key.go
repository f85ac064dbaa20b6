package workloadinformer

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// QueueKey returns the queue key of a workload: default/StatefulSet.apps:web. All
// kinds share one queue.
func QueueKey(kind workload.Kind, namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: kind.GroupKind().String() + ":" + name}
}

// ParseQueueKey parses a key of QueueKey.
func ParseQueueKey(key string) (in types.NamespacedName, gk schema.GroupKind, name string, ok bool) {
	namespace, rest, err := cache.SplitMetaNamespaceKey(key)
	kind, name, ok := strings.Cut(rest, ":") // the name of a workload contains no colon
	return types.NamespacedName{Namespace: namespace, Name: rest}, schema.ParseGroupKind(kind), name, ok && err == nil
}
