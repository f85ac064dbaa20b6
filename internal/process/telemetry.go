package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.uber.org/zap"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/observability"
	"knative.dev/pkg/observability/metrics"
	"knative.dev/pkg/observability/tracing"

	ours "github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
)

// Mount paths of the ConfigMaps of the same names, as in every Knative component.
// Mounted files exist before the process starts. A read through the API would delay
// the first event or miss its metrics.
const (
	loggingPath       = "/etc/config-logging"
	observabilityPath = "/etc/config-observability"
)

// NewLogger returns the logger of a process. ConfigMap config-logging has its level.
func NewLogger(name string) (*zap.SugaredLogger, error) {
	data, err := load(loggingPath)
	if err != nil {
		return nil, err
	}
	config, err := logging.NewConfigFromMap(data)
	if err != nil {
		return nil, fmt.Errorf("read config-logging: %w", err)
	}
	logger, _ := logging.NewLoggerFromConfig(config, name)
	return logger, nil
}

// observabilityConfig reads ConfigMap config-observability, which is mounted at path.
func observabilityConfig(path string) (*observability.Config, error) {
	data, err := load(path)
	if err != nil {
		return nil, err
	}
	config, err := observability.NewFromMap(data)
	if err != nil {
		return nil, fmt.Errorf("read config-observability: %w", err)
	}
	return config, nil
}

// setUpTelemetry sets the global meter and tracer providers and the propagator as
// ConfigMap config-observability configures them; without it nothing is exported. A
// function that scales to zero is often not running when Prometheus scrapes, so its
// metrics should be pushed (OTLP). flush exports the remaining data.
func setUpTelemetry(ctx context.Context, name string, config *observability.Config) (flush func(context.Context) error, err error) {
	service, err := resourceOf(name)
	if err != nil {
		return nil, err
	}
	meters, err := metrics.NewMeterProvider(ctx, config.Metrics, sdkmetric.WithResource(service))
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	tracers, err := releasetrace.NewTracerProvider(ctx, config.Tracing, service)
	if err != nil {
		return nil, err
	}
	otel.SetMeterProvider(meters)
	otel.SetTracerProvider(tracers)
	otel.SetTextMapPropagator(tracing.DefaultTextMapPropagator())
	ours.ObserveBuild(ours.Meter())
	return func(ctx context.Context) error {
		return errors.Join(meters.Shutdown(ctx), tracers.Shutdown(ctx))
	}, nil
}

// resourceOf returns what names the process in its metrics and spans. Without an instance, the cumulative counters
// of all replicas that push would be one series.
func resourceOf(name string) (*resource.Resource, error) {
	pod, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of the pod: %w", err)
	}
	service, err := resource.Merge(resource.Default(), resource.NewSchemaless(
		attribute.String("service.name", name),
		attribute.String("service.instance.id", pod),
		attribute.String("k8s.pod.name", pod)))
	if err != nil {
		return nil, fmt.Errorf("create telemetry resource: %w", err)
	}
	return service, nil
}

// load reads a mounted ConfigMap. A missing one is empty.
func load(path string) (map[string]string, error) {
	data, err := configmap.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}
