package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"knative.dev/pkg/observability/metrics"

	"github.com/breakwater-dev/breakwater/test/freeport"
)

// scraped is a metric in a scrape.
type scraped struct {
	Help, Type string
	Labels     []string
}

// The exporter derives names from instruments: it adds units and `_total`.
func TestAScrapeShowsTheDefinedNames(t *testing.T) {
	registry := prometheus.DefaultRegisterer
	prometheus.DefaultRegisterer = prometheus.NewRegistry()
	t.Cleanup(func() { prometheus.DefaultRegisterer = registry })
	port, err := freeport.Find(t.Context()) // the provider takes no port 0
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	provider, err := metrics.NewMeterProvider(t.Context(), metrics.Config{Protocol: metrics.ProtocolPrometheus, Endpoint: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown(t.Context()) })
	meter, want := provider.Meter(Scope), map[string]scraped{}
	for _, g := range Groups() {
		for _, d := range g.Metrics {
			values := make([]string, len(d.Labels))
			switch d.Type() {
			case TypeCounter:
				NewCounter(meter, d.Name).Add(t.Context(), 1, values...)
			case TypeHistogram:
				NewHistogram(meter, d.Name).Record(t.Context(), 1, values...)
			default:
				Observe(meter, d.Name, func(observe func(int64, ...string)) { observe(1, values...) })
			}
			labels := slices.Clone(d.Labels)
			slices.Sort(labels)
			want[d.Name] = scraped{d.Help, string(d.Type()), labels}
		}
	}
	families, err := prometheus.DefaultRegisterer.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]scraped{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "breakwater_") {
			continue // the exporter's own
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			if name := l.GetName(); name != "otel_scope_name" && name != "otel_scope_version" && name != "otel_scope_schema_url" {
				labels = append(labels, name)
			}
		}
		got[f.GetName()] = scraped{f.GetHelp(), map[string]string{"COUNTER": "counter", "GAUGE": "gauge", "HISTOGRAM": "histogram"}[f.GetType().String()], labels}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
