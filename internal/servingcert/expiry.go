package servingcert

import (
	"crypto/tls"

	"go.opentelemetry.io/otel/metric"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// ExpiryMetric is the metric with the Expiry of the certificate of a process.
const ExpiryMetric = "breakwater_certificate_expiry_timestamp_seconds"

// Expiry returns the end of the certificate of a server in seconds since 1970. It is 0 if
// the certificate cannot be read, so that an alert about its end fires.
func Expiry(config *tls.Config) int64 {
	// GetCertificate of Breakwater's servers ignores the client.
	pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil || pair.Leaf == nil {
		return 0
	}
	return pair.Leaf.NotAfter.Unix()
}

// ObserveExpiry reads the certificate of a process at each scrape.
func ObserveExpiry(meter metric.Meter, process string, config *tls.Config) {
	metrics.Observe(meter, ExpiryMetric, func(observe func(int64, ...string)) { observe(Expiry(config), process) })
}
