package budget

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/budget"
)

// progress is how far the watch of pods certainly is: the newest that its
// handlers were told of. (What the informer itself says is ahead of its store.)
type podWatch struct {
	mu     sync.Mutex
	newest string
}

func (p *podWatch) resourceVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// see is told of each event.
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
