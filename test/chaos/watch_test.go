//go:build e2e

package chaos

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// watcher checks every state of every ChangeWorkload that the watch returns, so
// that a wrong state is found even if it is brief.
type watcher struct {
	mu        sync.Mutex
	suspended map[types.UID]bool
	faults    []string
}

func (w *watcher) handler() cache.ResourceEventHandler {
	check := func(obj any) {
		if c, ok := obj.(*v1alpha1.ChangeWorkload); ok {
			w.check(c)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: check, UpdateFunc: func(_, obj any) { check(obj) }}
}

// check checks the invariants of a state. No person overrides a verdict in a
// run, so a fail is final.
func (w *watcher) check(c *v1alpha1.ChangeWorkload) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := c.Status.Counts
	switch c.Status.Phase {
	case v1alpha1.ReleaseSuspend:
		w.suspended[c.UID] = true
	case v1alpha1.ReleaseSuccess:
		if n.Failed > 0 || n.Checking > 0 || n.Preparing > 0 {
			w.faults = append(w.faults, fmt.Sprintf("%s/%s was a Success with %+v", c.Namespace, c.Name, n))
		}
	}
	if w.suspended[c.UID] && c.Status.Phase != v1alpha1.ReleaseSuspend {
		w.faults = append(w.faults, fmt.Sprintf("%s/%s was suspended and became %q", c.Namespace, c.Name, c.Status.Phase))
	}
}

func (w *watcher) violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.faults...)
}
