package pod

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// labelBurst is how many pods of one owner this process labels without delay during the
	// rollout. After the rollout it is labelsPerSecond.
	labelBurst = 20
	// labelsPerSecond is the rate after the rollout: the labels of 1000 pods take some
	// seconds, and cost the same as at a lower rate.
	labelsPerSecond = 250
	// labelsWhileRollingOut is the rate per second while the rollout is in progress.
	labelsWhileRollingOut = 1
	// retryWhileRollingOut and retryAfterRollout are the delays of a pod above the limit. All
	// pods of a release are tried again at about the same time, so at most one burst is
	// labeled in each delay. Therefore retryAfterRollout is the time in which a limiter refills its burst.
	retryWhileRollingOut = 4 * time.Second
	retryAfterRollout    = time.Second
	// maxOwners bounds the owners with a limiter. With more, the least recently
	// used one gets a new limiter.
	maxOwners = 1000
)

// labelLimiter limits the rate of labels for each owner of pods: a ReplicaSet, or a workload
// that owns its pods itself, with all its releases. No check waits for a label: a pod is
// claimed because it is Ready. The write of each label, its watch events and the CloudEvent are
// a fifth of the load of a rollout on the control plane. Without a limit they would slow the
// rollout down.
type labelLimiter struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	limiters *lru.Cache
}

func newLabelLimiter(c clock.PassiveClock) *labelLimiter {
	return &labelLimiter{clock: c, limiters: lru.New(maxOwners)}
}

// take takes one label of the limit of an owner and returns 0. If none is left now, it returns the time
// after which to try again.
func (p *labelLimiter) take(owner types.UID, rollingOut bool) time.Duration {
	perSecond, retry := rate.Limit(labelsPerSecond), retryAfterRollout
	if rollingOut {
		perSecond, retry = labelsWhileRollingOut, retryWhileRollingOut
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	known, ok := p.limiters.Get(owner)
	if !ok {
		known = rate.NewLimiter(perSecond, max(labelBurst, int(perSecond)))
		p.limiters.Add(owner, known)
	}
	l := known.(*rate.Limiter)
	if l.Limit() != perSecond {
		l.SetLimitAt(now, perSecond)
		l.SetBurstAt(now, max(labelBurst, int(perSecond)))
	}
	if l.AllowN(now, 1) {
		return 0
	}
	return retry
}
