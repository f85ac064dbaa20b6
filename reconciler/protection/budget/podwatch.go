package budget

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/wiring"
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
	o, ok := wiring.Object[metav1.Object](obj)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == "" || budget.NotOlder(o.GetResourceVersion(), p.newest) {
		p.newest = o.GetResourceVersion()
	}
}
