package podpermission

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// letGoTimeout bounds the call about one pod.
const letGoTimeout = 5 * time.Second

// unsentLetGoPods has the pods that were let go: their finalizers were removed at the deadline, before the
// centre had revoked their permissions. They are sent when the centre answers again, so that it
// records the leak and revokes the grants. The record is in memory only: a new leader reports
// the existing pods at once, and the centre revokes the grants of all others.
type unsentLetGoPods struct {
	mu  sync.Mutex
	all sets.Set[types.UID]
}

func newUnsentLetGoPods() *unsentLetGoPods { return &unsentLetGoPods{all: sets.New[types.UID]()} }

// add adds a pod.
func (l *unsentLetGoPods) add(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Insert(uid)
}

// send sends the pods to the centre, with the current name of the cluster: it may have been
// corrected meanwhile. It stops when a call fails.
func (l *unsentLetGoPods) send(ctx context.Context, centre Centre, cluster string) {
	l.mu.Lock()
	pods := l.all.UnsortedList()
	l.mu.Unlock()
	for _, uid := range pods {
		if err := sendLetGo(ctx, centre, cluster, uid); err != nil {
			return
		}
		logging.FromContext(ctx).Infow("told the permission centre of a pod whose finalizer was removed before its permissions were revoked", "uid", uid)
		l.mu.Lock()
		l.all.Delete(uid)
		l.mu.Unlock()
	}
}

func sendLetGo(ctx context.Context, centre Centre, cluster string, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, letGoTimeout)
	defer cancel()
	_, err := centre.Revoke(ctx, api.RevokeRequest{Cluster: cluster, PodUID: string(uid), LetGo: true})
	return err
}

// count returns the number of pods.
func (l *unsentLetGoPods) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.all))
}
