package budget

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// podWatch records a resourceVersion that the store of the pod informer has reached.
//
// A watch reports objects in the order of their resourceVersions. So the store has
// reached the resourceVersion of an event when the handler is called with it. A list has
// another order, and the informer does not store all objects at once. (The informer's
// LastSyncResourceVersion is ahead of its store in both cases.)
//
// The informer transforms all objects of a list before it stores the first one. podWatch
// recognizes a list by an object that is not newer than the one transformed before it.
// From then on, newest stays as it is until the handler is called with the last object
// of the list.
type podWatch struct {
	mu sync.Mutex
	// newest is the resourceVersion that the store has reached.
	newest string
	// queued is the newest resourceVersion of the transformed objects.
	queued string
	// listing reports whether the objects of a list are being stored; last is the last
	// object of the list.
	listing bool
	last    podVersion
}

// podVersion identifies an event of the informer.
type podVersion struct {
	uid             types.UID
	resourceVersion string
}

func versionOf(o metav1.Object) podVersion { return podVersion{o.GetUID(), o.GetResourceVersion()} }

func (p *podWatch) resourceVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// before returns a transformation that records each object before it is stored.
func (p *podWatch) before(transform cache.TransformFunc) cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(metav1.Object); ok {
			p.queue(o)
		}
		return transform(obj)
	}
}

func (p *podWatch) queue(o metav1.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queued != "" && budget.NotOlder(p.queued, o.GetResourceVersion()) {
		p.listing = true
	} else {
		p.queued = o.GetResourceVersion()
	}
	p.last = versionOf(o)
}

// observe records the object of an event; the store has it already.
func (p *podWatch) observe(obj any) {
	o, ok := wiring.Object[metav1.Object](obj)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listing {
		if versionOf(o) != p.last {
			return
		}
		p.listing, p.newest = false, p.queued
		return
	}
	if p.newest == "" || budget.NotOlder(o.GetResourceVersion(), p.newest) {
		p.newest = o.GetResourceVersion()
	}
}
