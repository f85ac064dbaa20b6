package functions

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
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

// maxBody is the maximum size of a request, in bytes. The data has at most
// events.MaxData; the rest is for attributes, for extensions of a Broker (the error
// of a dead letter) and for structured mode.
const maxBody = 64 << 10

// eventTimeout limits the handling of one event: two calls to the server, at their default
// deadline of 15 s each, with the reads and writes around them. It is shorter than the drain of
// a process that ends.
const eventTimeout = process.DrainTimeout - 5*time.Second

// Receiver is the HTTP handler of one function. Its responses have no body, because
// the Broker would accept a body as a reply event.
type Receiver struct {
	name     string
	handle   Function
	clock    clock.PassiveClock
	received metrics.Counter
	duration metrics.Histogram
}

var _ http.Handler = (*Receiver)(nil)

// NewReceiver returns the receiver of a function; name is its metric label.
func NewReceiver(name string, handle Function, clock clock.PassiveClock, meter metric.Meter) *Receiver {
	return &Receiver{
		name: name, handle: handle, clock: clock,
		received: metrics.NewCounter(meter, "breakwater_function_events_total"),
		duration: metrics.NewHistogram(meter, "breakwater_function_event_duration_seconds"),
	}
}

// ServeHTTP receives one event in binary or structured mode.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := r.clock.Now()
	// A disconnected sender must not cancel a call to the server, whose response
	// would be lost. The sender repeats the event, which has no further effect.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), eventTimeout)
	defer cancel()
	req.Body = http.MaxBytesReader(w, req.Body, maxBody)
	e, err := decode(req)
	if err == nil {
		ctx = withTrace(ctx, req.Header, *e)
		ctx = logging.WithLogger(ctx, logging.FromContext(ctx).With(
			"function", r.name, "type", e.Type(), "id", e.ID(), "source", e.Source(), "trace", traceID(ctx)))
		err = r.run(ctx, *e)
	}
	result := ResultOf(err)
	switch result {
	case ResultPermanent:
		logging.FromContext(ctx).Errorw("Permanent error; the event is not retried", "error", err)
	case ResultRetry:
		logging.FromContext(ctx).Warnw("Transient error; the event will be retried", "error", err)
	}
	labels := []string{r.name, typeLabel(e), string(result)}
	r.received.Add(ctx, 1, labels...)
	r.duration.Record(ctx, r.clock.Since(start).Seconds(), labels...)
	w.WriteHeader(result.Status())
}

// run turns a panic into an error, so that its stack is logged with the event's id
// and the sender does not see a lost connection.
func (r *Receiver) run(ctx context.Context, e event.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.handle(ctx, e)
}

// decode reads the event. Its errors are permanent.
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

// typeLabel replaces unknown types by "other", to bound the metric label: senders in
// the cluster may use any type.
func typeLabel(e *event.Event) string {
	if e == nil || !slices.Contains(events.Types(), e.Type()) {
		return "other"
	}
	return e.Type()
}
