package changepod

import (
	"context"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
)

// tracedSender records the span of each event, and passes it on.
type tracedSender struct {
	*flood
	spans []trace.SpanID
}

// Send implements events.Sender.
func (s *tracedSender) Send(ctx context.Context, e cloudevents.Event) {
	s.spans = append(s.spans, trace.SpanContextFromContext(ctx).SpanID())
	s.flood.Send(ctx, e)
}

// The server gives no verdict, so the controller ends the batch at its timeouts.
func TestWakeUpsOfABatchBelongToItsSpanWhichTheControllerMakesAtTheEnd(t *testing.T) {
	spans, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(releasetrace.IDGenerator(), sdktrace.WithSpanProcessor(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	f := newFlood(t, 1, 1)
	sender := &tracedSender{flood: f}
	f.r.sender = sender
	f.reaches = time.Hour // no event reaches function submit
	c := f.get("r00--0")
	c.Annotations = map[string]string{v1alpha1.TraceparentAnnotation: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"}
	f.write(c)
	f.run(20, 30*time.Minute)
	if phase := f.get("r00--0").Status.Phase; phase != v1alpha1.BatchExecuteDone {
		t.Fatalf("the batch is %q", phase)
	}
	made := spans.Ended()
	if len(made) != 1 || made[0].Name() != "batch" || len(sender.spans) == 0 {
		t.Fatalf("%d spans, %d events", len(made), len(sender.spans))
	}
	for _, id := range sender.spans {
		if id != made[0].SpanContext().SpanID() {
			t.Errorf("an event belongs to span %s, want %s", id, made[0].SpanContext().SpanID())
		}
	}
}
