package server

import (
	"context"

	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
)

// NewSender returns a sender of events that runs until ctx ends and its queue is drained. Its
// queue is bounded. Without Knative Eventing, or without a ConfigMap that names a Broker, events
// wait in the queue; when the queue is full, events are dropped.
func (p *Process) NewSender(ctx context.Context, cmw configmap.Watcher) *delivery.Sender {
	sender := broker.NewSender(ctx, cmw, delivery.Options{})
	p.running.Go(func() {
		if err := sender.Run(ctx); err != nil {
			logging.FromContext(ctx).Errorw("event sender stopped", "error", err)
		}
	})
	return sender
}
