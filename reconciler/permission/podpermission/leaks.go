package podpermission

import (
	"context"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// ApplicationLister calls visit for each application that matches a query. It does not keep them.
type ApplicationLister interface {
	Each(ctx context.Context, query url.Values, visit func(api.Application)) error
}

// leakTracker has the addresses of the pods of leaked applications, and the pods that have these
// addresses now. Such a pod can use permissions that were not granted to it, except those of a
// node-scoped provider, which are for the addresses of the node: the application does not say which
// of its permissions these are.
type leakTracker struct {
	recorder record.EventRecorder

	mu sync.Mutex
	// byIP maps an address of a pod without hostNetwork to its leaked application.
	byIP map[string]api.Application
	// holders are the pods with such an address.
	holders map[types.NamespacedName]leakReport
}

// leakReport is the last Event of a pod with an address of a leaked application of another pod.
type leakReport struct {
	application string
	at          time.Time
}

func newLeakTracker(recorder record.EventRecorder) *leakTracker {
	return &leakTracker{recorder: recorder, byIP: map[string]api.Application{}, holders: map[types.NamespacedName]leakReport{}}
}

// refresh lists the leaked applications.
func (l *leakTracker) refresh(ctx context.Context, centre ApplicationLister, cluster string) error {
	byIP := map[string]api.Application{}
	if err := centre.Each(ctx, url.Values{"cluster": {cluster}, "state": {string(api.Leaked)}}, func(app api.Application) {
		if app.HostNetwork {
			return // its permissions are node-scoped, and all pods with hostNetwork of the node have its address
		}
		for _, ip := range app.PodIPs {
			byIP[ip] = app
		}
	}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byIP = byIP
	return nil
}

// check reports a pod that has an address of a leaked application, again after RepeatAfter.
func (l *leakTracker) check(p *corev1.Pod, now time.Time) {
	at := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ip := range podmeta.IPs(p) {
		app, leaked := l.byIP[ip]
		if !leaked || app.PodUID == string(p.UID) || !workload.PodActive(p) {
			continue
		}
		if last := l.holders[at]; last.application != app.ID || now.Sub(last.at) >= eventrecorder.RepeatAfter {
			l.holders[at] = leakReport{app.ID, now}
			l.recorder.Eventf(p, corev1.EventTypeWarning, podmeta.ReasonLeakedPermissionOnPodIP,
				"address %s belonged to pod %s/%s, whose permissions are not revoked; this pod can use them, except those of node-scoped providers: %s", ip, app.Namespace, app.Pod, leakMessage(app))
		}
		return
	}
	delete(l.holders, at)
}

func (l *leakTracker) forget(at types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.holders, at)
}

// counts returns the number of addresses of leaked applications, and of pods that have
// one.
func (l *leakTracker) counts() (addresses, holders int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.byIP)), int64(len(l.holders))
}
