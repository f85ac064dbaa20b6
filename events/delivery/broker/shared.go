package broker

import (
	"context"

	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
)

// SharedSender holds the one Sender of a process of controllers, with its queues and one
// set of connections. The first constructor that needs the Sender creates it, because
// only the context that sharedmain passes to constructors has the clients.
type SharedSender struct {
	sender *delivery.Sender
	// signer builds what signs the events; nil if they are not signed.
	signer func(context.Context) delivery.Signer
	// drained is closed when the Sender has stopped.
	drained chan struct{}
}

// SignWith makes the Sender sign its events. It is called before the first constructor, with
// whose context build is called.
func (s *SharedSender) SignWith(build func(context.Context) delivery.Signer) { s.signer = build }

// With returns a constructor for sharedmain that passes the Sender to build.
// sharedmain calls constructors sequentially.
func (s *SharedSender) With(build func(context.Context, configmap.Watcher, events.Sender) *controller.Impl) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		if s.sender == nil {
			s.start(ctx, cmw)
		}
		return build(ctx, cmw, s.sender)
	}
}

// WithConfirming is With for a controller that needs to know what the Broker accepted.
func (s *SharedSender) WithConfirming(build func(context.Context, configmap.Watcher, events.ConfirmingSender) *controller.Impl) injection.ControllerConstructor {
	return s.With(func(ctx context.Context, cmw configmap.Watcher, _ events.Sender) *controller.Impl {
		return build(ctx, cmw, s.sender)
	})
}

// WithDelivering is With for a controller that waits for the answer of the Broker.
func (s *SharedSender) WithDelivering(build func(context.Context, configmap.Watcher, *delivery.Sender) *controller.Impl) injection.ControllerConstructor {
	return s.With(func(ctx context.Context, cmw configmap.Watcher, _ events.Sender) *controller.Impl {
		return build(ctx, cmw, s.sender)
	})
}

// start creates the Sender and runs it until ctx ends.
func (s *SharedSender) start(ctx context.Context, cmw configmap.Watcher) {
	logger := logging.FromContext(ctx)
	var options delivery.Options
	if s.signer != nil {
		options.Signer = s.signer(ctx)
	}
	sender := NewSender(ctx, cmw, options)
	s.sender, s.drained = sender, make(chan struct{})
	go func() {
		defer close(s.drained)
		if err := sender.Run(ctx); err != nil {
			logger.Errorw("event sender stopped", "error", err)
		}
	}()
}

// WaitUntilDrained waits until the Sender has drained its queues, at most
// delivery.DefaultDrainTime. Wake-ups, announcements and verdicts of inboxes
// that were not sent are repeated; other events are lost.
func (s *SharedSender) WaitUntilDrained() {
	if s.drained != nil {
		<-s.drained
	}
}
