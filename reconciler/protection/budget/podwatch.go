package budget

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/budget"
)

// podWatch records the newest resourceVersion that the event handlers of the pod
// informer have seen. (LastSyncResourceVersion of the informer is ahead of its store.)
type podWatch struct {
	mu     sync.Mutex
	newest string
}

func (p *podWatch) resourceVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// observe records the object of an event.
func (p *podWatch) observe(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	o, ok := obj.(metav1.Object)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == "" || budget.NotOlder(o.GetResourceVersion(), p.newest) {
		p.newest = o.GetResourceVersion()
	}
}
