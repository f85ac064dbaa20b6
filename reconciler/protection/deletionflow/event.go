package deletionflow

import (
	"context"
	"math"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
)

// sendEvent sends a CloudEvent if the breaker opened or closed, after the status is
// written. The initial closed state is not an event.
func (r *Reconciler) sendEvent(ctx context.Context, before, after *v1alpha1.PodDeletionFlowControl, s deletionflow.Breaker) {
	if isOpen(before) != isOpen(after) {
		delivery.SendBestEffort(ctx, r.sender, eventOf(after, s))
	}
}

func eventOf(f *v1alpha1.PodDeletionFlowControl, s deletionflow.Breaker) events.DeletionFlow {
	c := f.GetStatus().GetCondition(v1alpha1.FlowControlOpen)
	d := events.DeletionFlow{
		Open: s.Open, Name: f.Name, UID: f.UID, SinceUnix: c.LastTransitionTime.Inner.Unix(),
		Deleted: s.Deleted, Reason: c.Reason, Message: c.Message,
	}
	if !s.Open {
		return d
	}
	d.Suspected, d.RatioTenths = string(s.Suspected), int64(math.Round(10*s.Ratio()))
	if !s.RoomTime.IsZero() {
		d.RoomUnix = s.RoomTime.Unix()
	}
	return d
}
