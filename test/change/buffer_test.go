//go:build controlplane

package change

import (
	"bytes"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
)

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// unschedulable selects a node that does not exist.
func unschedulable(d *appsv1.Deployment) {
	d.Spec.Template.Spec.NodeSelector = map[string]string{"breakwater.dev/test": "none"}
}
