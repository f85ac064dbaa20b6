package podpermission

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// dueCheckInterval is the interval between two checks for due tasks.
	dueCheckInterval = 5 * time.Second
	// checkInterval is how often leaks are listed and stale breaker entries removed.
	checkInterval = time.Minute
	// leakListPause is the minimum pause after a list of leaks, in multiples of its duration: 100,000 leaks are 1000 calls.
	leakListPause = 10
	// maxLeakListPause bounds the pause, also after a list that fails late.
	maxLeakListPause = 10 * time.Minute
)

// periodicTasks are the periodic tasks. Each process reports the pods whose finalizers it removed; the
// other tasks are those of the leader.
type periodicTasks struct {
	*Reconciler
	lister            ApplicationLister
	podReportReceiver PodReportReceiver

	lastPodReport, lastCheck, nextLeakList time.Time
}

// leaderKey is a key for the leader check of all tasks. There is one bucket, so the
// leader of one key is the leader of all.
var leaderKey = types.NamespacedName{Namespace: "periodic", Name: "periodic"}

// run runs the tasks that are due until ctx ends.
func (c *periodicTasks) run(ctx context.Context) {
	wait.UntilWithContext(ctx, c.runDue, dueCheckInterval)
}

// runDue runs the tasks that are due.
func (c *periodicTasks) runDue(ctx context.Context) {
	// In each process, not only in the leader.
	c.unsentLetGo.send(ctx, c.centre, c.settings().Cluster)
	if !c.IsLeaderFor(leaderKey) {
		c.lastPodReport, c.lastCheck, c.nextLeakList = time.Time{}, time.Time{}, time.Time{}
		return
	}
	now := c.clock.Now()
	if now.Sub(c.lastCheck) >= min(checkInterval, c.settings().PodReportInterval) {
		c.lastCheck = now
		c.checkLeaksAndBreakers(ctx, now)
	}
	if now.Sub(c.lastPodReport) >= c.settings().PodReportInterval {
		c.lastPodReport = now
		c.reportPods(ctx, now)
	}
}

func (c *periodicTasks) reportPods(ctx context.Context, now time.Time) {
	revoked, unconfirmed, err := c.sendPodReport(ctx, now)
	if err != nil {
		// Retry after checkInterval instead of the whole interval.
		c.lastPodReport = now.Add(min(checkInterval, c.settings().PodReportInterval) - c.settings().PodReportInterval)
		logging.FromContext(ctx).Warnw("could not report the existing pods", "error", err)
		return
	}
	if unconfirmed > 0 {
		logging.FromContext(ctx).Warnw("the report of existing pods would revoke too many grants; an admin of the permission centre must confirm it", "applications", unconfirmed)
	}
	if revoked > 0 {
		logging.FromContext(ctx).Infow("the permission centre revokes grants of deleted pods", "applications", revoked)
	}
}

// checkLeaksAndBreakers lists the leaks, reports the pods with their addresses, and removes stale
// entries of breakers.
func (c *periodicTasks) checkLeaksAndBreakers(ctx context.Context, now time.Time) {
	if !now.Before(c.nextLeakList) {
		if err := c.leaks.refresh(ctx, c.lister, c.settings().Cluster); err != nil {
			logging.FromContext(ctx).Warnw("could not list leaked applications", "error", err)
		}
		ended := c.clock.Now()
		c.nextLeakList = ended.Add(min(leakListPause*ended.Sub(now), maxLeakListPause))
	}
	all, err := c.pods.List(labels.Everything())
	if err != nil {
		return // a lister in memory returns no error
	}
	uids := map[string]types.UID{}
	for _, p := range all {
		c.leaks.check(p, now)
		if podmeta.InitContainer(p) != nil {
			uids[podbreaker.Key(p.Namespace, p.Name)] = p.UID
		}
	}
	removed, err := podbreaker.RemoveStale(ctx, c.kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace), now, func(key string) (types.UID, bool) { uid, ok := uids[key]; return uid, ok })
	if err != nil {
		logging.FromContext(ctx).Warnw("could not remove stale breaker entries", "error", err)
	} else if removed > 0 {
		logging.FromContext(ctx).Infow("removed breaker entries of deleted pods", "entries", removed)
	}
}
