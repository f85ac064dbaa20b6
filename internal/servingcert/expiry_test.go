package servingcert

import (
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestAScrapeShowsTheEndOfTheServedCertificate(t *testing.T) {
	reader := metric.NewManualReader()
	s := &server{cert: filepath.Join(t.TempDir(), "tls.crt"), key: filepath.Join(t.TempDir(), "tls.key")}
	ObserveExpiry(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), "init-action-server", ServerConfig(s.cert, s.key))
	scrape := func() int64 {
		var data metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &data); err != nil {
			t.Fatal(err)
		}
		point := data.ScopeMetrics[0].Metrics[0].Data.(metricdata.Gauge[int64]).DataPoints[0]
		if process, _ := point.Attributes.Value("process"); process.AsString() != "init-action-server" {
			t.Errorf("of process %s", process.AsString())
		}
		return point.Value
	}
	if got := scrape(); got != 0 {
		t.Errorf("without a certificate: %d", got)
	}
	a, _ := renew(t, Authority{}, start)
	for _, issued := range []time.Time{start, start.Add(20 * 24 * time.Hour)} {
		s.use(t, issue(t, a, issued))
		if got, want := scrape(), issued.Add(certificateLife).Unix(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
