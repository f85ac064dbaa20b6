package releasetrace

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"knative.dev/pkg/observability/tracing"
)

// NewTracerProvider returns a tracer provider that can make spans with the ids of this package; service names the
// process. Its queue is bounded: a missing collector costs spans and delays nothing.
func NewTracerProvider(ctx context.Context, config tracing.Config, service *resource.Resource) (*tracing.TracerProvider, error) {
	provider, err := tracing.NewTracerProvider(ctx, config, sdktrace.WithResource(service), IDGenerator())
	if err != nil {
		return nil, fmt.Errorf("set up traces: %w", err)
	}
	return provider, nil
}
