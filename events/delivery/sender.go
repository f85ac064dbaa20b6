package delivery

import (
	"cmp"
	"context"
	"errors"
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

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// Options configures a Sender. Zero values mean the defaults.
type Options struct {
	// Signer signs each event that has no signature yet; nil signs none. An event that cannot be
	// signed is retried like one that the Broker did not accept.
	Signer Signer
	// Clock defaults to the real clock.
	Clock clock.WithDelayedExecution

	// Only tests set the others.

	// queueLength is the length of each queue except that of pod.finished events. Default 1000.
	queueLength int
	// workers is the number of workers of each of these queues. A worker sends one event at a
	// time. The in-memory Broker answers only after the subscriber did, cold start included, so
	// more workers are needed than the rate suggests. Default 16.
	workers int
	// sendTimeout limits one attempt, which includes the cold start and the work
	// of a function. Default 30s.
	sendTimeout time.Duration
	// podFinishedPerSecond limits the rate of pod.finished events, whose queue has five
	// times queueLength. In a rollout hundreds of pods become Ready within seconds. The
	// limit leaves capacity for the rollout. Default 10.
	podFinishedPerSecond float64
	// retryTime limits the retries of an event, from its first attempt; pauses
	// double from 200ms to 5s, with jitter. It is shorter than sendTimeout, so an
	// attempt that times out is the last one: its event most likely arrived.
	// Default 15s.
	retryTime time.Duration
	// drainTime limits how long Run continues to send after its context ended.
	// Default DefaultDrainTime.
	drainTime time.Duration
	// meterProvider defaults to the global provider.
	meterProvider metric.MeterProvider
}

const (
	// DefaultSendTimeout limits one attempt to send an event.
	DefaultSendTimeout = 30 * time.Second
	// DefaultDrainTime limits how long a Sender continues to send after its context ended.
	DefaultDrainTime = 5 * time.Second
	// defaultWorkers is the number of workers of each queue except that of pod.finished events.
	defaultWorkers = 16
)

// Signer signs an event; *eventsigning.Store implements it.
type Signer interface {
	Sign(ctx context.Context, e *cloudevents.Event) error
}

func (o Options) withDefaults() Options {
	o.queueLength = cmp.Or(o.queueLength, 1000)
	o.workers = cmp.Or(o.workers, defaultWorkers)
	o.podFinishedPerSecond = cmp.Or(o.podFinishedPerSecond, 10)
	o.sendTimeout = cmp.Or(o.sendTimeout, DefaultSendTimeout)
	o.retryTime = cmp.Or(o.retryTime, 15*time.Second)
	o.drainTime = cmp.Or(o.drainTime, DefaultDrainTime)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.meterProvider == nil {
		o.meterProvider = otel.GetMeterProvider()
	}
	return o
}

// Sender sends events to the Broker. It is safe for concurrent use. Events may be
// queued before Run.
//
// There are six queues, each with its own workers: wake-ups of function submit, and
// changeworkload.progressed; wake-ups of function judge; those of external judges; pod.finished; the
// other changes of releases; all other events, such as verdicts. A slow server, a slow judge or a
// function that does not start occupies only the workers of its queue, so a fail does not wait.
type Sender struct {
	options Options
	target  *Target

	wakeUps, metricsWakeUps, externalWakeUps, podFinished, releases, others *queue

	metrics *instruments
}

// NewSender returns a sender to the target. It sends nothing before Run.
func NewSender(target *Target, o Options) *Sender {
	o = o.withDefaults()
	s := &Sender{
		options: o, target: target,
		wakeUps: newQueue(o.queueLength), metricsWakeUps: newQueue(o.queueLength), externalWakeUps: newQueue(o.queueLength),
		releases: newQueue(o.queueLength), others: newQueue(o.queueLength),
		podFinished: newQueue(podFinishedQueueFactor * o.queueLength),
	}
	s.metrics = newInstruments(o.meterProvider, func() int {
		n := s.podFinished.length()
		for _, q := range s.unlimited() {
			n += q.length()
		}
		return n
	}, target)
	return s
}

// unlimited returns the queues without a limit of their rate.
func (s *Sender) unlimited() []*queue {
	return []*queue{s.wakeUps, s.metricsWakeUps, s.externalWakeUps, s.releases, s.others}
}

// podFinishedQueueFactor times queueLength is the length of the queue of
// pod.finished events: they are queued faster than they are sent.
const podFinishedQueueFactor = 5

// podFinishedWorkers is the number of workers for pod.finished events.
const podFinishedWorkers = 2

// queueFor returns the queue of an event. External judges share one: users choose their number.
func (s *Sender) queueFor(e cloudevents.Event) *queue {
	switch e.Type() {
	case events.TypePodFinished:
		return s.podFinished
	case events.TypeChangePodReady:
		switch e.Extensions()[events.JudgeExtension] {
		case v1alpha1.JudgeServer:
			return s.wakeUps
		case v1alpha1.JudgeMetrics:
			return s.metricsWakeUps
		default:
			return s.externalWakeUps
		}
	case events.TypeOrderReady, events.TypeChangeWorkloadProgressed:
		return s.wakeUps // progress is sent again in the next interval
	case events.TypeChangeWorkloadStarted, events.TypeChangeWorkloadSucceeded, events.TypeChangeWorkloadSuspended,
		events.TypeChangeWorkloadFailed, events.TypeChangeWorkloadRolledBack, events.TypeChangeWorkloadBypassed:
		return s.releases
	default:
		return s.others
	}
}

// Send queues the event and returns at once. The event may be lost: if the queue
// is full, which drops its oldest event, or if the Broker does not accept it before
// its retries end. Senders of wake-ups therefore repeat them until they took effect. A
// queued event with the same id and source is replaced. The event carries the span
// of ctx; the end of ctx does not cancel it.
func (s *Sender) Send(ctx context.Context, e cloudevents.Event) { s.SendAndConfirm(ctx, e, nil) }

// SendAndConfirm is Send. It calls accepted, unless that is nil, when the Broker has
// accepted the event.
func (s *Sender) SendAndConfirm(ctx context.Context, e cloudevents.Event, accepted func()) {
	q := s.queueFor(e)
	result, dropped := q.add(queued{event: e, span: trace.SpanContextFromContext(ctx), accepted: accepted})
	switch {
	case result == addCoalesced:
		s.metrics.coalesce(ctx, e.Type())
	case result == addClosed:
		s.metrics.drop(ctx, e.Type(), droppedShutdown)
	case dropped == nil:
		q.full.Store(false)
	default:
		s.metrics.drop(ctx, dropped.event.Type(), droppedFull)
		if !q.full.Swap(true) {
			logging.FromContext(ctx).Warnw("The event queue is full; its oldest events are dropped",
				"type", dropped.event.Type(), "length", q.limit)
		}
	}
}

// Deliver sends the event once, bypassing the queue, and returns nil if the
// Broker accepted it. It waits until ctx ends, at most DefaultSendTimeout. If no Broker
// is known, it returns a NoBrokerError at once. After an error the event may have
// arrived nevertheless.
func (s *Sender) Deliver(ctx context.Context, e cloudevents.Event) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.sendTimeout)
	defer cancel()
	return s.post(ctx, e)
}

// Run sends events until ctx ends, then drains the queues for at most DefaultDrainTime.
func (s *Sender) Run(ctx context.Context) error {
	// Requests outlive ctx by at most that time, so that a terminating process
	// completes them.
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var running errgroup.Group
	running.Go(func() error {
		s.target.run(ctx)
		return nil
	})
	for _, q := range s.unlimited() {
		for range s.options.workers {
			running.Go(func() error {
				s.runWorker(ctx, sending, q, nil)
				return nil
			})
		}
	}
	limiter := rate.NewLimiter(rate.Limit(s.options.podFinishedPerSecond), 1)
	for range podFinishedWorkers {
		running.Go(func() error {
			s.runWorker(ctx, sending, s.podFinished, limiter)
			return nil
		})
	}
	<-ctx.Done()
	for _, q := range append(s.unlimited(), s.podFinished) {
		q.close()
	}
	timer := s.options.Clock.AfterFunc(s.options.drainTime, stop)
	defer timer.Stop()
	return errors.Join(running.Wait(), s.metrics.unregister())
}

// runWorker sends the events of a queue one by one. It waits for the Broker and
// the limiter before it takes an event, because queued events are coalesced. Both
// waits stop when ctx ends.
func (s *Sender) runWorker(ctx, sending context.Context, q *queue, limiter *rate.Limiter) {
	for {
		k, ok := q.next()
		if !ok {
			return
		}
		_, err := s.target.wait(ctx)
		if limiter != nil {
			_ = limiter.Wait(ctx) // fails when ctx ends: the rest is sent without a limit
		}
		event := q.take(k)
		if err == nil {
			err = s.sendWithRetries(sending, event)
		}
		s.recordDropped(sending, event, err)
		if err == nil && event.accepted != nil {
			event.accepted()
		}
		q.done(k)
	}
}

// sendWithRetries posts the event until the Broker accepts it, an error is
// permanent, or retryTime is over.
func (s *Sender) sendWithRetries(ctx context.Context, q queued) error {
	ctx = trace.ContextWithRemoteSpanContext(ctx, q.span)
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = 200*time.Millisecond, 5*time.Second, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, s.options.sendTimeout)
		defer cancel()
		err := s.post(ctx, q.event)
		switch resultOf(err) {
		case resultRefused, resultInvalid:
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(s.options.retryTime))
	return err
}

// post makes one attempt and records it.
func (s *Sender) post(ctx context.Context, e cloudevents.Event) error {
	began := s.options.Clock.Now()
	client, err := s.target.client(ctx)
	if err == nil {
		e, err = s.signed(ctx, e)
	}
	if err == nil {
		err = client.post(ctx, e)
	}
	s.metrics.tried(ctx, e.Type(), resultOf(err), s.options.Clock.Since(began))
	return err
}

// signed returns the event with a signature. The signature of a verdict is kept: it is made with
// another key.
func (s *Sender) signed(ctx context.Context, e cloudevents.Event) (cloudevents.Event, error) {
	if s.options.Signer == nil || e.Extensions()[eventsigning.Extension] != nil {
		return e, nil
	}
	e = e.Clone() // the queue and the caller have the same extensions
	if err := s.options.Signer.Sign(ctx, &e); err != nil {
		return e, &unsignedError{err}
	}
	return e, nil
}

// recordDropped counts and logs the event if it was not sent.
func (s *Sender) recordDropped(ctx context.Context, q queued, err error) {
	if err == nil {
		return
	}
	reason := resultOf(err)
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		reason = droppedShutdown
	}
	s.metrics.drop(ctx, q.event.Type(), reason)
	logging.FromContext(ctx).Warnw("Event dropped",
		"type", q.event.Type(), "id", q.event.ID(), "reason", reason, "error", err)
}
