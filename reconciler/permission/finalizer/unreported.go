package finalizer

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// reportTimeout bounds the report of one pod.
const reportTimeout = 5 * time.Second

// unreportedPods has the pods that were released at their deadline, before the centre had
// revoked their permissions. They are reported when the centre answers again, so that it
// records the leak and revokes the grants. The record is in memory only: a new process reports
// the existing pods at once, and the centre revokes the grants of all others.
type unreportedPods struct {
	mu  sync.Mutex
	all map[types.UID]string // UID to cluster
}

func newUnreportedPods() *unreportedPods { return &unreportedPods{all: map[types.UID]string{}} }

// add adds a pod.
func (l *unreportedPods) add(cluster string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[uid] = cluster
}

// report reports the pods to the centre and stops at the first error.
func (l *unreportedPods) report(ctx context.Context, centre Centre) {
	l.mu.Lock()
	pods := maps.Clone(l.all)
	l.mu.Unlock()
	for uid, cluster := range pods {
		if err := reportPod(ctx, centre, cluster, uid); err != nil {
			return
		}
		logging.FromContext(ctx).Infow("reported a pod that was deleted before its permissions were revoked", "uid", uid)
		l.mu.Lock()
		delete(l.all, uid)
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
