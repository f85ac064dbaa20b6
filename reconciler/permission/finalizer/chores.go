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
	tick = 5 * time.Second
	// often is how often leaks are asked for and the record is cleaned.
	often = time.Minute
)

// Record is the record of the breaker.
type Record interface {
	Collect(ctx context.Context, now time.Time, living func(key string) (types.UID, bool)) (int, error)
}

// chores are what the leader does now and then.
type chores struct {
	*Reconciler
	lister   Lister
	reporter Reporter
	record   Record

	swept, looked time.Time
}

// leads stands for all chores: with one bucket, who leads for one key leads for all.
var leads = types.NamespacedName{Namespace: "chores", Name: "chores"}

// run does what is due until ctx ends.
func (c *chores) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		// Whoever leads: it is this process that let them go.
		c.letGo.tell(ctx, c.centre)
		if !c.IsLeaderFor(leads) {
			c.swept, c.looked = time.Time{}, time.Time{}
			return
		}
		now := c.clock.Now()
		if now.Sub(c.looked) >= min(often, c.settings().SweepInterval) {
			c.looked = now
			c.look(ctx, now)
		}
		if now.Sub(c.swept) >= c.settings().SweepInterval {
			c.swept = now
			c.sweep(ctx, now)
		}
	}, tick)
}

func (c *chores) sweep(ctx context.Context, now time.Time) {
	revoked, err := sweep(ctx, c.kube, c.reporter, c.settings().Cluster, now)
	if err != nil {
		// Not a whole interval lost: in a minute again.
		c.swept = now.Add(min(often, c.settings().SweepInterval) - c.settings().SweepInterval)
		logging.FromContext(ctx).Warnw("the living pods could not be reported", "error", err)
		return
	}
	if revoked > 0 {
		logging.FromContext(ctx).Infow("grants of pods that are gone are being revoked", "applications", revoked)
	}
}

func (c *chores) look(ctx context.Context, now time.Time) {
	if err := c.leaks.refresh(ctx, c.lister, c.settings().Cluster); err != nil {
		logging.FromContext(ctx).Warnw("leaks could not be asked for", "error", err)
	}
	all, err := c.pods.List(labels.Everything())
	if err != nil {
		return // a store in memory has no error to give
	}
	uids := map[string]types.UID{}
	for _, p := range all {
		c.leaks.look(ctx, p)
		if podmeta.InitContainer(p) != nil {
			uids[podbreaker.Key(p.Namespace, p.Name)] = p.UID
		}
	}
	removed, err := c.record.Collect(ctx, now, func(key string) (types.UID, bool) { uid, ok := uids[key]; return uid, ok })
	if err != nil {
		logging.FromContext(ctx).Warnw("the record of the breaker could not be cleaned", "error", err)
	} else if removed > 0 {
		logging.FromContext(ctx).Infow("removed entries of pods that are gone from the record of the breaker", "entries", removed)
	}
}
