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
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
)

// maxBody is how many bytes an event may have on the wire. Its data has at
// most events.MaxData; the rest is room for attributes, for a Broker's
// extensions (the error of a dead letter) and for structured mode.
const maxBody = 64 << 10

// wakeUpTimeout bounds the work for one event: two calls to the server at their
// default deadline of 15 s each, and what is read and written around them.
const wakeUpTimeout = 40 * time.Second

// Receiver is the HTTP side of one function. It answers with an empty body: a
// body would be taken for a reply event and sent into the Broker.
type Receiver struct {
	name     string
	handle   Function
	clock    clock.PassiveClock
	received metric.Int64Counter
	duration metric.Float64Histogram
}

var _ http.Handler = (*Receiver)(nil)

// NewReceiver returns the receiver of a function; name is its metric label.
func NewReceiver(name string, handle Function, clock clock.PassiveClock, meter metric.Meter) (*Receiver, error) {
	received, err := meter.Int64Counter("breakwater.function.events",
		metric.WithDescription("Events that a function received, by function, type and fate."))
	if err != nil {
		return nil, fmt.Errorf("create metric: %w", err)
	}
	duration, err := meter.Float64Histogram("breakwater.function.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that a function took for an event."))
	if err != nil {
		return nil, fmt.Errorf("create metric: %w", err)
	}
	return &Receiver{name: name, handle: handle, clock: clock, received: received, duration: duration}, nil
}

// ServeHTTP takes one event in binary or structured mode.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	start := r.clock.Now()
	// A sender that hangs up must not break off a call to the server, whose
	// answer would then be lost. It will send again and change nothing.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), wakeUpTimeout)
	defer cancel()
	req.Body = http.MaxBytesReader(w, req.Body, maxBody)
	e, err := decode(req)
	if err == nil {
		ctx = traced(ctx, req.Header, *e)
		ctx = logging.WithLogger(ctx, logging.FromContext(ctx).With(
			"function", r.name, "type", e.Type(), "id", e.ID(), "source", e.Source(), "trace", traceID(ctx)))
		err = r.run(ctx, *e)
	}
	fate := FateOf(err)
	switch fate {
	case FatePermanent:
		logging.FromContext(ctx).Errorw("event can never work", "error", err)
	case FateRetry:
		logging.FromContext(ctx).Warnw("event has to come again", "error", err)
	}
	labels := metric.WithAttributes(attribute.String("function", r.name),
		attribute.String("type", typeLabel(e)), attribute.String("fate", string(fate)))
	r.received.Add(ctx, 1, labels)
	r.duration.Record(ctx, r.clock.Since(start).Seconds(), labels)
	w.WriteHeader(fate.Status())
}

// run turns a panic into an error, so that the event is told from a lost
// connection and its stack is logged with its id.
func (r *Receiver) run(ctx context.Context, e event.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.handle(ctx, e)
}

// decode reads the event. What is not an event now will not be one next time.
func decode(req *http.Request) (*event.Event, error) {
	if req.Method != http.MethodPost {
		return nil, Permanentf("method %s: an event is posted", req.Method)
	}
	e, err := cehttp.NewEventFromHTTPRequest(req)
	if err != nil {
		return nil, Permanent(fmt.Errorf("decode the event: %w", err))
	}
	if err := e.Validate(); err != nil {
		return nil, Permanent(fmt.Errorf("decode the event: %w", err))
	}
	return e, nil
}

// traced continues the sender's trace: from the HTTP headers, which the server
// has read already where traces are exported, or, where a Broker has dropped
// those, from the event's own traceparent.
func traced(ctx context.Context, header http.Header, e event.Event) context.Context {
	sent := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(header))
	came := trace.SpanContextFromContext(sent)
	switch {
	case !came.IsValid() && e.Extensions()[extensions.TraceParentExtension] == nil:
		return ctx // the library would warn at each event
	case !came.IsValid():
		return client.ExtractDistributedTracingExtension(ctx, e)
	case trace.SpanContextFromContext(ctx).TraceID() == came.TraceID():
		return ctx
	default:
		return trace.ContextWithRemoteSpanContext(ctx, came)
	}
}

func traceID(ctx context.Context) string {
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	return ""
}

// typeLabel bounds the metric label: anybody in the cluster can invent types.
func typeLabel(e *event.Event) string {
	if e == nil || !slices.Contains(events.Types(), e.Type()) {
		return "other"
	}
	return e.Type()
}
