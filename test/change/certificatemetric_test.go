//go:build controlplane

package change

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/breakwater-dev/breakwater/internal/servingcert"
)

func TestTheWebhookReportsTheEndOfItsCertificate(t *testing.T) {
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	await(t, "the metric shows an end in the future", func(ctx context.Context) error {
		var data metricdata.ResourceMetrics
		if err := reader.Collect(ctx, &data); err != nil {
			return err
		}
		for _, s := range data.ScopeMetrics {
			for _, m := range s.Metrics {
				if m.Name != servingcert.ExpiryMetric {
					continue
				}
				for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
					process, _ := p.Attributes.Value("process")
					if process.AsString() == "webhook" && time.Unix(p.Value, 0).After(time.Now()) {
						return nil
					}
				}
			}
		}
		return errors.New("no such metric")
	})
}
