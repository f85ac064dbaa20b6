package releasetrace

import (
	"testing"

	"go.opentelemetry.io/otel"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"knative.dev/pkg/observability/tracing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Function verdict ends batches. The parent of calls and verdicts is the id of the batch in the events.
func TestTheSpanOfABatchHasTheIDOfItsEvents(t *testing.T) {
	config := tracing.Config{Protocol: tracing.ProtocolGRPC, Endpoint: "http://127.0.0.1:1", SamplingRate: 1}
	tracers, err := NewTracerProvider(t.Context(), config, sdkresource.Empty())
	if err != nil {
		t.Fatal(err)
	}
	provider, ok := tracers.TracerProvider.(*sdktrace.TracerProvider)
	if !ok {
		t.Fatalf("the provider is a %T", tracers.TracerProvider)
	}
	spans, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
	provider.RegisterSpanProcessor(spans)
	otel.SetTracerProvider(tracers)
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	batch := &v1alpha1.ChangePod{}
	batch.UID, batch.Status.Phase = "batch", v1alpha1.BatchExecuteDone
	batch.Annotations = map[string]string{v1alpha1.TraceparentAnnotation: "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"}
	BatchIfEnded(t.Context(), v1alpha1.BatchPostWait, batch, batch.CreationTimestamp.Time)
	want := trace.SpanContextFromContext(OfBatch(t.Context(), batch)).SpanID()
	if got := spans.Ended(); len(got) != 1 || got[0].SpanContext().SpanID() != want {
		t.Errorf("spans %v, want %s", got, want)
	}
}
