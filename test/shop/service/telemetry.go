// SPDX-License-Identifier: Apache-2.0

package service

import (
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// Telemetry returns a meter provider and the handler that shows its metrics to
// Prometheus: OpenTelemetry's metrics of HTTP and the Go runtime, and the process
// metrics of Prometheus' client. The sizes of bodies are omitted. Each series has
// the labels; a label without a value is omitted.
func Telemetry(labels map[string]string) (*metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	shown := maps.Clone(labels)
	maps.DeleteFunc(shown, func(_, value string) bool { return value == "" })
	labeled := prometheus.WrapRegistererWith(shown, registry)
	labeled.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(labeled), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, nil, err
	}
	meters := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(drop("http.*.body.size")))
	if err := runtime.Start(runtime.WithMeterProvider(meters)); err != nil {
		return nil, nil, err
	}
	return meters, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

func drop(name string) metric.View {
	return metric.NewView(metric.Instrument{Name: name}, metric.Stream{Aggregation: metric.AggregationDrop{}})
}
