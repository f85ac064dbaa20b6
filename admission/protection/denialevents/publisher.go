// Package denialevents tells programs, by the event deletion.denied, that a guard
// refuses. A storm of refusals must not become a storm of events, so each
// replica tells of the first that a guard refuses in a slot, and all replicas by
// the same id. People find every refusal in Kubernetes Events and metrics.
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

// Teller tells of refusals. A nil one tells nobody.
type Publisher struct {
	sender events.Sender
	clock  clock.PassiveClock

	mu   sync.Mutex
	slot int64
	// told are the guards of which the slot has been told.
	published map[types.UID]bool
}

// New returns one.
func New(sender events.Sender, c clock.PassiveClock) *Publisher {
	return &Publisher{sender: sender, clock: c}
}

// Tell tells of a refusal, unless its guard has refused before in this slot. The
// slot is filled in.
func (t *Publisher) Publish(ctx context.Context, d events.DeletionDenied) {
	if t != nil && t.first(&d) {
		delivery.SendBestEffort(ctx, t.sender, d)
	}
}

func (t *Publisher) first(d *events.DeletionDenied) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	const seconds = int64(events.DenialSlot / time.Second)
	slot := t.clock.Now().Unix() / seconds * seconds
	if slot != t.slot {
		t.slot, t.published = slot, map[types.UID]bool{}
	}
	if t.published[d.Guard.UID] {
		return false
	}
	t.published[d.Guard.UID], d.SlotUnix = true, slot
	return true
}
