package workloadinformer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// QueueKey returns the queue key of a workload: default/StatefulSet.apps:web. All
// kinds share one queue.
func QueueKey(kind workload.Kind, namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: kind.GroupKind().String() + ":" + name}
}

// Leading returns the workload of a key of QueueKey, nil if it does not exist. leads reports
// whether the Reconciler leads the bucket of a key. The error is what the Reconciler returns for an
// invalid key, or for one that it does not lead.
func (w *Watch) Leading(leads func(types.NamespacedName) bool, key string) (*workload.Workload, error) {
	queueKey, gk, name, ok := parseQueueKey(key)
	if !ok {
		return nil, controller.NewPermanentError(fmt.Errorf("the key %q is not namespace/kind:name", key))
	}
	if !leads(queueKey) {
		return nil, controller.NewSkipKey(key)
	}
	return w.Get(gk, queueKey.Namespace, name), nil
}

// parseQueueKey parses a key of QueueKey.
func parseQueueKey(key string) (in types.NamespacedName, gk schema.GroupKind, name string, ok bool) {
	namespace, rest, err := cache.SplitMetaNamespaceKey(key)
	kind, name, ok := strings.Cut(rest, ":") // the name of a workload contains no colon
	return types.NamespacedName{Namespace: namespace, Name: rest}, schema.ParseGroupKind(kind), name, ok && err == nil
}
