// Package traceexport exports the traces of a process with controllers. Functions, which import releasetrace, do
// without the packages of controllers.
package traceexport

import (
	"context"
	"log"
	"time"

	"go.opentelemetry.io/otel"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/observability/resource"
	"knative.dev/pkg/observability/tracing"

	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// flushTimeout limits the export of the last spans.
const flushTimeout = 5 * time.Second

// Exporter exports the spans of a process with controllers. The tracer provider of sharedmain cannot make
// spans with given ids.
type Exporter struct {
	component string
	provider  *tracing.TracerProvider
}

// New returns an Exporter; component names the process in its spans.
func New(component string) *Exporter { return &Exporter{component: component} }

// Before returns the constructors of all controllers of the process. The first one sets traces up, as ConfigMap
// config-observability configures them.
func (e *Exporter) Before(all []injection.ControllerConstructor) []injection.ControllerConstructor {
	first := func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		must := wiring.NewMust(ctx, "set up traces")
		config, err := sharedmain.GetObservabilityConfig(ctx)
		must(err)
		must(e.start(ctx, config.Tracing))
		return all[0](ctx, cmw)
	}
	return append([]injection.ControllerConstructor{first}, all[1:]...)
}

// start replaces the global tracer provider, unless traces are off.
func (e *Exporter) start(ctx context.Context, config tracing.Config) error {
	if config.Protocol == tracing.ProtocolNone {
		return nil
	}
	provider, err := releasetrace.NewTracerProvider(ctx, config, resource.Default(e.component))
	if err != nil {
		return err
	}
	e.provider = provider
	otel.SetTracerProvider(provider)
	return nil
}

// Flush exports the last spans when the process ends.
func (e *Exporter) Flush() {
	if e.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		log.Printf("flush traces: %v", err)
	}
}
