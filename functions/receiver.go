package functions

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/cloudevents/sdk-go/observability/opentelemetry/v2/client"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/extensions"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// eventTimeout limits the handling of one event: usually at most two calls to the server, at
// their default deadline of 15 s each, with the reads and writes around them. A wake-up with
// more calls may be cut off; it is repeated. The limit is shorter than DrainTimeout, so a process that ends
// completes the events that it is handling. Those that still wait may be cut off; they are repeated.
const eventTimeout = process.DrainTimeout - 5*time.Second

// maxWaiting is the maximum number of events that wait to be handled after their body has arrived. An
// event above it is answered with an error, and the Broker repeats it.
const maxWaiting = 256

// Receiver is the HTTP handler of one function. Its responses have no body, because
// the Broker would accept a body as a reply event.
type Receiver struct {
	name   string
	handle Function
	unread unreadBodies
	// waiting and handling have an element for each event that waits to be handled after its body
	// has arrived, and for each that is being handled.
	waiting, handling chan struct{}

	clock    clock.PassiveClock
	received metrics.Counter
	duration metrics.Histogram
}

var _ http.Handler = (*Receiver)(nil)

// NewReceiver returns the receiver of a function; name is its metric label, and limit the
// number of events that it handles at a time. A limit of Knative would count requests whose
// body does not arrive, so that one pod could keep all events waiting.
func NewReceiver(name string, limit int, handle Function, clock clock.PassiveClock, meter metric.Meter) *Receiver {
	return &Receiver{
		name: name, handle: handle, clock: clock,
		unread:  unreadBodies{arriving: list.New()},
		waiting: make(chan struct{}, maxWaiting), handling: make(chan struct{}, limit),
		received: metrics.NewCounter(meter, "breakwater_function_requests_total"),
		duration: metrics.NewHistogram(meter, "breakwater_function_event_duration_seconds"),
	}
}

// ServeHTTP receives one event in binary or structured mode.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := r.clock.Now()
	ctx := context.WithoutCancel(req.Context())
	e, err := r.read(w, req)
	eventType := ""
	if err == nil {
		eventType = e.Type()
		ctx = withTrace(ctx, req.Header, *e)
		ctx = logging.WithLogger(ctx, logging.FromContext(ctx).With(
			"function", r.name, "type", eventType, "id", e.ID(), "source", e.Source(), "trace", traceID(ctx)))
		err = r.run(ctx, *e, req.Context().Done())
	}
	result := ResultOf(err)
	switch result {
	case ResultPermanent:
		logging.FromContext(ctx).Errorw("Permanent error; the event is not retried", "error", err)
	case ResultRetry:
		logging.FromContext(ctx).Warnw("Transient error; the event is retried, unless this was the last attempt", "error", err)
	}
	labels := []string{r.name, events.TypeLabel(eventType), string(result)}
	r.received.Add(ctx, 1, labels...)
	r.duration.Record(ctx, r.clock.Since(start).Seconds(), labels...)
	w.WriteHeader(result.Status())
}

// read reads the event.
func (r *Receiver) read(w http.ResponseWriter, req *http.Request) (*event.Event, error) {
	body, err := r.unread.read(w, req)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return decode(req)
}

// run handles the event when fewer than the limit are handled. It turns a panic into an error,
// so that its stack is logged with the event's id and the sender does not see a lost connection.
func (r *Receiver) run(ctx context.Context, e event.Event, sender <-chan struct{}) (err error) {
	if err := r.wait(sender); err != nil {
		return err
	}
	defer func() { <-r.handling }()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	// A disconnected sender must not cancel a call to the server, whose response
	// would be lost. The sender repeats the event, which has no further effect.
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	return r.handle(ctx, e)
}

// wait waits until fewer events than the limit are handled, or the sender disconnects.
func (r *Receiver) wait(sender <-chan struct{}) error {
	select {
	case r.handling <- struct{}{}:
		return nil
	default:
	}
	select {
	case r.waiting <- struct{}{}:
	default:
		return errors.New("too many events wait")
	}
	defer func() { <-r.waiting }()
	select {
	case r.handling <- struct{}{}:
		return nil
	case <-sender:
		return errors.New("the sender disconnected while the event waited to be handled")
	}
}

// decode decodes the event. Its errors are permanent.
func decode(req *http.Request) (*event.Event, error) {
	if req.Method != http.MethodPost {
		return nil, Permanentf("method %s is not POST", req.Method)
	}
	e, err := cehttp.NewEventFromHTTPRequest(req)
	if err != nil {
		return nil, Permanent(fmt.Errorf("decode event: %w", err))
	}
	if err := e.Validate(); err != nil {
		return nil, Permanent(fmt.Errorf("decode event: %w", err))
	}
	return e, nil
}

// withTrace continues the trace of the sender: from the HTTP headers, which the
// HTTP server has already extracted if it exports traces, or from the event's
// traceparent extension if a Broker dropped the headers.
func withTrace(ctx context.Context, header http.Header, e event.Event) context.Context {
	extracted := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(header))
	sender := trace.SpanContextFromContext(extracted)
	switch {
	case !sender.IsValid() && e.Extensions()[extensions.TraceParentExtension] == nil:
		return ctx // ExtractDistributedTracingExtension would log a warning
	case !sender.IsValid():
		return client.ExtractDistributedTracingExtension(ctx, e)
	case trace.SpanContextFromContext(ctx).TraceID() == sender.TraceID():
		return ctx
	default:
		return trace.ContextWithRemoteSpanContext(ctx, sender)
	}
}

func traceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}
