// Package denialevents publishes denials as CloudEvent deletion.denied. To bound the
// number of events, each replica sends only the first denial by an object (a budget, a
// flow control or a protected object) in a period of events.DenialPeriod, and all
// replicas use the same id for it. The metric
// breakwater_admission_requests_total counts every denial. Kubernetes Events do not show
// all: repeated ones are merged, many at once are dropped, and a budget records one only
// for a request that does not fit into it.
package denialevents

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
)

// Publisher publishes denials. A nil Publisher does nothing.
type Publisher struct {
	sender events.Sender
	clock  clock.PassiveClock

	mu     sync.Mutex
	period int64
	// published are the UIDs of the denying objects with an event in the period.
	published map[types.UID]bool
}

// New returns a Publisher.
func New(sender events.Sender, c clock.PassiveClock) *Publisher {
	return &Publisher{sender: sender, clock: c}
}

// Publish sends an event unless one was sent for d.DeniedBy in the current period. It
// sets PeriodUnix.
func (p *Publisher) Publish(ctx context.Context, d events.DeletionDenied) {
	if p != nil && p.first(&d) {
		delivery.SendBestEffort(ctx, p.sender, d)
	}
}

func (p *Publisher) first(d *events.DeletionDenied) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	const seconds = int64(events.DenialPeriod / time.Second)
	period := p.clock.Now().Unix() / seconds * seconds
	if period != p.period {
		p.period, p.published = period, map[types.UID]bool{}
	}
	if p.published[d.DeniedBy.UID] {
		return false
	}
	p.published[d.DeniedBy.UID], d.PeriodUnix = true, period
	return true
}
