package traceexport

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel"
	"knative.dev/pkg/observability/tracing"
)

// restore restores the global tracer provider after a test.
func restore(t *testing.T) {
	t.Helper()
	before := otel.GetTracerProvider()
	t.Cleanup(func() { otel.SetTracerProvider(before) })
}

func TestWithoutTracesTheTracerProviderIsNotReplaced(t *testing.T) {
	restore(t)
	t.Setenv("SYSTEM_NAMESPACE", "system")
	before := otel.GetTracerProvider()
	e := New("controller")
	if err := e.start(t.Context(), tracing.Config{Protocol: tracing.ProtocolNone}); err != nil {
		t.Fatal(err)
	}
	if otel.GetTracerProvider() != before {
		t.Error("it is replaced")
	}
	e.Flush() // flushes nothing
}

func TestAnInvalidEndpointIsAnError(t *testing.T) {
	restore(t)
	t.Setenv("SYSTEM_NAMESPACE", "system")
	if err := New("controller").start(t.Context(), tracing.Config{Protocol: tracing.ProtocolGRPC, Endpoint: "://"}); err == nil {
		t.Error("no error")
	}
}

// Without a collector nothing waits for the export, and the queue is bounded: otherwise the test would not end.
func TestWithoutACollectorSpansAreDropped(t *testing.T) {
	restore(t)
	t.Setenv("SYSTEM_NAMESPACE", "system")
	e := New("controller")
	config := tracing.Config{Protocol: tracing.ProtocolGRPC, Endpoint: "http://127.0.0.1:1", SamplingRate: 1}
	if err := e.start(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		_, span := otel.Tracer("test").Start(t.Context(), "span")
		span.End()
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_ = e.provider.Shutdown(ended) // the export fails
}
