package altershield

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// startSpan starts the span of a call with all its attempts. Each attempt has the span of its HTTP request.
func startSpan(ctx context.Context, action string) (context.Context, trace.Span) {
	return otel.Tracer(metrics.Scope).Start(ctx, "altershield "+action,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("breakwater.action", action)))
}

// endSpan ends the span of a call. The result is that of the metrics: messages of errors may quote the server.
func endSpan(span trace.Span, err error) {
	result := resultOf(err)
	span.SetAttributes(attribute.String("breakwater.result", result))
	if err != nil {
		span.SetStatus(codes.Error, result)
	}
	span.End()
}
