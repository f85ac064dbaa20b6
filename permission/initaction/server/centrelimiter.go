package server

import (
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/breakwater-dev/breakwater/permission/settings"
)

// Share is this replica's share of the calls a second that all replicas together
// may make to the centre. Each knows of the others by the endpoints of the
// Service; while one comes or goes the sum may be off for a moment.
type CentreLimiter struct {
	*rate.Limiter
	settings func() settings.Settings
	replicas atomic.Int64
}

// NewShare returns the share of a replica that is alone.
func NewCentreLimiter(s func() settings.Settings) *CentreLimiter {
	share := &CentreLimiter{Limiter: rate.NewLimiter(1, 1), settings: s}
	share.SetReplicas(1)
	return share
}

// Replicas tells how many replicas there are.
func (s *CentreLimiter) SetReplicas(n int) {
	s.replicas.Store(int64(max(n, 1)))
	s.Refresh()
}

// Refresh follows the settings.
func (s *CentreLimiter) Refresh() {
	mine := s.settings().CentreCallsPerSecond / float64(s.replicas.Load())
	s.SetLimit(rate.Limit(mine))
	s.SetBurst(max(int(mine), 1))
}
