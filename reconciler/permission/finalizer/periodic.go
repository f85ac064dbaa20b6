package finalizer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// tick is how often it is looked whether a chore is due.
	dueCheckInterval = 5 * time.Second
	// often is how often leaks are asked for and the record is cleaned.
	refreshInterval = time.Minute
)

// Record is the record of the breaker.
type BreakerRecord interface {
	RemoveStale(ctx context.Context, now time.Time, living func(key string) (types.UID, bool)) (int, error)
}

// chores are what the leader does now and then.
type periodicTasks struct {
	*Reconciler
	lister        Lister
	podReporter   PodReporter
	breakerRecord BreakerRecord

	lastSweep, lastRefresh time.Time
}

// leads stands for all chores: with one bucket, who leads for one key leads for all.
var leaderKey = types.NamespacedName{Namespace: "chores", Name: "chores"}

// run does what is due until ctx ends.
func (c *periodicTasks) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		// Whoever leads: it is this process that let them go.
		c.unreported.report(ctx, c.centre)
		if !c.IsLeaderFor(leaderKey) {
			c.lastSweep, c.lastRefresh = time.Time{}, time.Time{}
			return
		}
		now := c.clock.Now()
		if now.Sub(c.lastRefresh) >= min(refreshInterval, c.settings().SweepInterval) {
			c.lastRefresh = now
			c.refresh(ctx, now)
		}
		if now.Sub(c.lastSweep) >= c.settings().SweepInterval {
			c.lastSweep = now
			c.sweep(ctx, now)
		}
	}, dueCheckInterval)
}

func (c *periodicTasks) sweep(ctx context.Context, now time.Time) {
	revoked, err := sweep(ctx, c.kube, c.podReporter, c.settings().Cluster, now)
	if err != nil {
		// Not a whole interval lost: in a minute again.
		c.lastSweep = now.Add(min(refreshInterval, c.settings().SweepInterval) - c.settings().SweepInterval)
		logging.FromContext(ctx).Warnw("the living pods could not be reported", "error", err)
		return
	}
	if revoked > 0 {
		logging.FromContext(ctx).Infow("grants of pods that are gone are being revoked", "applications", revoked)
	}
}

func (c *periodicTasks) refresh(ctx context.Context, now time.Time) {
	if err := c.leaks.refresh(ctx, c.lister, c.settings().Cluster); err != nil {
		logging.FromContext(ctx).Warnw("leaks could not be asked for", "error", err)
	}
	all, err := c.pods.List(labels.Everything())
	if err != nil {
		return // a store in memory has no error to give
	}
	uids := map[string]types.UID{}
	for _, p := range all {
		c.leaks.check(ctx, p)
		if podmeta.InitContainer(p) != nil {
			uids[podbreaker.Key(p.Namespace, p.Name)] = p.UID
		}
	}
	removed, err := c.breakerRecord.RemoveStale(ctx, now, func(key string) (types.UID, bool) { uid, ok := uids[key]; return uid, ok })
	if err != nil {
		logging.FromContext(ctx).Warnw("the record of the breaker could not be cleaned", "error", err)
	} else if removed > 0 {
		logging.FromContext(ctx).Infow("removed entries of pods that are gone from the record of the breaker", "entries", removed)
	}
}
