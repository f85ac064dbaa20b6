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

// reportTimeout bounds the report of one pod.
const reportTimeout = 5 * time.Second

// unreportedPods has the pods whose finalizers were removed at the deadline, before the centre had
// revoked their permissions. They are reported when the centre answers again, so that it
// records the leak and revokes the grants. The record is in memory only: a new process reports
// the existing pods at once, and the centre revokes the grants of all others.
type unreportedPods struct {
	mu  sync.Mutex
	all sets.Set[types.UID]
}

func newUnreportedPods() *unreportedPods { return &unreportedPods{all: sets.New[types.UID]()} }

// add adds a pod.
func (l *unreportedPods) add(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Insert(uid)
}

// report reports the pods to the centre, with the current name of the cluster: it may have been
// corrected meanwhile. It stops when a call fails.
func (l *unreportedPods) report(ctx context.Context, centre Centre, cluster string) {
	l.mu.Lock()
	pods := l.all.UnsortedList()
	l.mu.Unlock()
	for _, uid := range pods {
		if err := reportPod(ctx, centre, cluster, uid); err != nil {
			return
		}
		logging.FromContext(ctx).Infow("reported a pod whose finalizer was removed before its permissions were revoked", "uid", uid)
		l.mu.Lock()
		l.all.Delete(uid)
		l.mu.Unlock()
	}
}

func reportPod(ctx context.Context, centre Centre, cluster string, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	_, err := centre.Revoke(ctx, api.RevokeRequest{Cluster: cluster, PodUID: string(uid), LetGo: true})
	return err
}

// count returns the number of unreported pods.
func (l *unreportedPods) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.all))
}
