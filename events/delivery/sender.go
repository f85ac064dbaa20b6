package delivery

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
)

// Options of a Sender. A zero value means the default.
type Options struct {
	// QueueLength is how many events may wait. Default 1000.
	QueueLength int
	// Workers is how many events are sent at a time. The in-memory Broker
	// answers only after the subscriber has, a cold start included, so there
	// are more than the rate alone would need. Default 16.
	Workers int
	// SendTimeout is how long one try may take. It covers the cold start of a
	// function and its work. Default 30s.
	SendTimeout time.Duration
	// PodsPerSecond bounds how many events of finished pods are sent a second,
	// queued apart from all others (five times QueueLength of them). A
	// roll-out finishes hundreds of pods in seconds, and nobody waits for these
	// events: what delivering them costs is not taken from the roll-out, and no
	// wake-up waits behind them. Default 10.
	PodsPerSecond float64
	// RetryTime is how long an event is tried again, from its first try; the
	// pauses double from 200ms to 5s, with jitter. It is shorter than
	// SendTimeout, so a try that timed out, and whose event has most likely
	// arrived, is the last one. Default 15s.
	RetryTime time.Duration
	// DrainTime is how long Run goes on sending after its context ended.
	// Default 5s.
	DrainTime time.Duration
	// Clock defaults to the real one.
	Clock clock.WithDelayedExecution
	// MeterProvider defaults to that of the process.
	MeterProvider metric.MeterProvider
}

func (o Options) withDefaults() Options {
	set(&o.QueueLength, 1000)
	set(&o.Workers, 16)
	set(&o.PodsPerSecond, 10)
	set(&o.SendTimeout, 30*time.Second)
	set(&o.RetryTime, 15*time.Second)
	set(&o.DrainTime, 5*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	return o
}

func set[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// Sender hands events to the Broker. Its methods may be called by many
// goroutines, and before Run.
type Sender struct {
	options Options
	target  *Target
	// queue has the events that somebody waits for, pods those of finished pods.
	queue, pods *queue
	metrics     *metrics
	// full is set while the queue leaves events out, so that it is logged once.
	full atomic.Bool
}

// NewSender returns a sender to the target. Nothing is sent before Run.
func NewSender(target *Target, o Options) (*Sender, error) {
	o = o.withDefaults()
	q, pods := newQueue(o.QueueLength), newQueue(podsQueueFactor*o.QueueLength)
	m, err := newMetrics(o.MeterProvider, func() int { return q.length() + pods.length() }, target)
	if err != nil {
		return nil, err
	}
	return &Sender{options: o, target: target, queue: q, pods: pods, metrics: m}, nil
}

// podsQueueFactor is how much longer the queue of finished pods is: they come
// faster than they are sent.
const podsQueueFactor = 5

// podsWorkers send the events of finished pods, at their pace.
const podsWorkers = 2

// queueOf returns the queue of a type.
func (s *Sender) queueOf(eventType string) *queue {
	if eventType == events.TypePodFinished {
		return s.pods
	}
	return s.queue
}

// Send queues the event and returns at once. It may never arrive: a full queue
// leaves it out, and so does a Broker that does not accept it in RetryTime.
// Whoever needs what it brings about sends it again until that has happened.
// An event of the same id and source that still waits is replaced. The span of
// ctx goes with the event; its end does not.
func (s *Sender) Send(ctx context.Context, e cloudevents.Event) {
	switch s.queueOf(e.Type()).add(waiting{event: e, span: trace.SpanContextFromContext(ctx)}) {
	case putAdded:
		s.full.Store(false)
	case putCoalesced:
		s.metrics.coalesce(ctx, e.Type())
	case putFull:
		s.metrics.drop(ctx, e.Type(), droppedFull)
		if !s.full.Swap(true) {
			logging.FromContext(ctx).Warnw("The queue of events is full; new ones are left out",
				"type", e.Type(), "length", s.queueOf(e.Type()).limit)
		}
	case putClosed:
		s.metrics.drop(ctx, e.Type(), droppedShutdown)
	}
}

// Deliver sends the event past the queue, once, and returns nil when the
// Broker has accepted it. It takes as long as ctx allows and at most
// SendTimeout; where no Broker is known it returns a NoBrokerError at once. An
// error does not say that the event did not arrive.
func (s *Sender) Deliver(ctx context.Context, e cloudevents.Event) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.SendTimeout)
	defer cancel()
	return s.try(ctx, e)
}

// Run sends until ctx ends, then for at most DrainTime what is still queued.
func (s *Sender) Run(ctx context.Context) error {
	// Requests outlive ctx by DrainTime: a process that is replaced does not
	// break off what it has begun.
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var running errgroup.Group
	running.Go(func() error {
		s.target.run(ctx)
		return nil
	})
	for range s.options.Workers {
		running.Go(func() error {
			s.work(ctx, sending, s.queue, nil)
			return nil
		})
	}
	pace := rate.NewLimiter(rate.Limit(s.options.PodsPerSecond), 1)
	for range podsWorkers {
		running.Go(func() error {
			s.work(ctx, sending, s.pods, pace)
			return nil
		})
	}
	<-ctx.Done()
	s.queue.close()
	s.pods.close()
	timer := s.options.Clock.AfterFunc(s.options.DrainTime, stop)
	defer timer.Stop()
	return errors.Join(running.Wait(), s.metrics.observer.Unregister())
}

// work sends one event after another. Where there is no Broker it waits for
// one, as long as ctx lasts, before it takes an event from the queue: events
// that wait are coalesced. A pace counts until ctx ends.
func (s *Sender) work(ctx, sending context.Context, q *queue, pace *rate.Limiter) {
	for {
		k, ok := q.next()
		if !ok {
			return
		}
		_, err := s.target.wait(ctx)
		if pace != nil {
			_ = pace.Wait(ctx) // it fails when ctx ends: what is left goes at once
		}
		if w, ok := q.take(k); ok {
			if err == nil {
				err = s.sendOne(sending, w)
			}
			s.settle(sending, w, err)
		}
		q.done(k)
	}
}

// sendOne tries until the event is accepted, will never be, or RetryTime is over.
func (s *Sender) sendOne(ctx context.Context, w waiting) error {
	ctx = trace.ContextWithRemoteSpanContext(ctx, w.span)
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = 200*time.Millisecond, 5*time.Second, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, s.options.SendTimeout)
		defer cancel()
		err := s.try(ctx, w.event)
		switch resultOf(err) {
		case resultRefused, resultInvalid:
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(s.options.RetryTime))
	return err
}

func (s *Sender) try(ctx context.Context, e cloudevents.Event) error {
	began := s.options.Clock.Now()
	out, err := s.target.current(ctx)
	if err == nil {
		err = out.post(ctx, e)
	}
	s.metrics.tried(ctx, e.Type(), resultOf(err), s.options.Clock.Since(began))
	return err
}

// settle counts an event that was given up.
func (s *Sender) settle(ctx context.Context, w waiting, err error) {
	if err == nil {
		return
	}
	reason := resultOf(err)
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		reason = droppedShutdown
	}
	s.metrics.drop(ctx, w.event.Type(), reason)
	logging.FromContext(ctx).Warnw("An event was given up",
		"type", w.event.Type(), "id", w.event.ID(), "reason", reason, "error", err)
}
