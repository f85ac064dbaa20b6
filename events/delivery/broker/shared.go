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

// SharedSender holds the process's one Sender. It is made when the first controller
// that wants it is built, because clients are in the context only then.
type SharedSender struct {
	sender *delivery.Sender
	// drained is closed when the Sender has ended.
	drained chan struct{}
}

// With turns a constructor that wants the Sender into one for sharedmain,
// which calls them one after another.
func (s *SharedSender) With(build func(context.Context, configmap.Watcher, events.Sender) *controller.Impl) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		if s.sender == nil {
			s.open(ctx, cmw)
		}
		return build(ctx, cmw, s.sender)
	}
}

// open makes the Sender and runs it until ctx ends.
func (s *SharedSender) open(ctx context.Context, cmw configmap.Watcher) {
	logger := logging.FromContext(ctx)
	sender, err := NewSender(ctx, cmw, delivery.Options{})
	if err != nil {
		logger.Panicw("create the sender of events", "error", err)
	}
	s.sender, s.drained = sender, make(chan struct{})
	go func() {
		defer close(s.drained)
		if err := sender.Run(ctx); err != nil {
			logger.Errorw("the sender of events ended", "error", err)
		}
	}()
}

// Drain waits until the Sender has sent what it still can; it bounds that
// itself. Events are wake-ups, so what it cannot send loses nothing.
func (s *SharedSender) Drain() {
	if s.drained != nil {
		<-s.drained
	}
}
