package server

import (
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/breakwater-dev/breakwater/permission/settings"
)

// CentreLimiter limits this replica's calls to the centre. All replicas together
// obey the configured rate: each takes an equal share, by the number of ready
// endpoints of the Service. While that number changes, the sum may differ briefly.
type CentreLimiter struct {
	*rate.Limiter
	settings func() settings.Settings
	replicas atomic.Int64
}

// NewCentreLimiter returns a limiter for one replica; SetReplicas changes the number.
func NewCentreLimiter(s func() settings.Settings) *CentreLimiter {
	l := &CentreLimiter{Limiter: rate.NewLimiter(1, 1), settings: s}
	l.SetReplicas(1)
	return l
}

// SetReplicas sets the number of replicas.
func (l *CentreLimiter) SetReplicas(n int) {
	l.replicas.Store(int64(max(n, 1)))
	l.Refresh()
}

// Refresh applies the current settings.
func (l *CentreLimiter) Refresh() {
	share := l.settings().CentreCallsPerSecond / float64(l.replicas.Load())
	l.SetLimit(rate.Limit(share))
	l.SetBurst(max(int(share), 1))
}
