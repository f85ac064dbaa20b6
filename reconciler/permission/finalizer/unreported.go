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

// tellTimeout bounds telling the centre of one pod that was let go.
const reportTimeout = 5 * time.Second

// letGo knows pods that were let go at their deadline and of which the centre
// has not heard: it is told as soon as it answers, so that the leak is in its
// books too, and taken back. It is in memory only: a process that is new reports
// the living pods at once, and what the others have is taken back by that.
type unreportedPods struct {
	mu  sync.Mutex
	all map[types.UID]string // to the cluster
}

func newUnreportedPods() *unreportedPods { return &unreportedPods{all: map[types.UID]string{}} }

// add notes a pod.
func (l *unreportedPods) add(cluster string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[uid] = cluster
}

// tell tells of the pods, until the centre gives no answer.
func (l *unreportedPods) report(ctx context.Context, centre Centre) {
	l.mu.Lock()
	left := maps.Clone(l.all)
	l.mu.Unlock()
	for uid, cluster := range left {
		if err := reportPod(ctx, centre, cluster, uid); err != nil {
			return
		}
		logging.FromContext(ctx).Infow("the permission centre knows of a pod that was let go before its permissions were taken back", "uid", uid)
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

// count is how many the centre has not heard of.
func (l *unreportedPods) count() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.all))
}
