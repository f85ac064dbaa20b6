package centre

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// instruments are the metrics of /metrics. Labels are providers, reasons and
// routes, never pods.
type instruments struct {
	registry *prometheus.Registry
	states   *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	reused   *prometheus.CounterVec
	requests *prometheus.HistogramVec
}

func newInstruments(s *store.Store) *instruments {
	m := &instruments{
		registry: prometheus.NewRegistry(),
		states:   counter("breakwater_permission_centre_grant_transitions_total"),
		calls:    histogram("breakwater_permission_centre_provider_call_duration_seconds"),
		reused:   counter("breakwater_permission_centre_leaked_address_reuses_total"),
		requests: histogram("breakwater_permission_centre_request_duration_seconds"),
	}
	collector := &storeCollector{
		store:        s,
		applications: description("breakwater_permission_centre_applications"),
		leaked:       description("breakwater_permission_centre_leaked_grants"),
	}
	m.registry.MustRegister(m.states, m.calls, m.reused, m.requests, collector,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name string) *prometheus.CounterVec {
	d := metrics.Find(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

func histogram(name string) *prometheus.HistogramVec {
	d := metrics.Find(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Buckets}, d.Labels)
}

func description(name string) *prometheus.Desc {
	d := metrics.Find(name)
	return prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
}

// GrantState counts a grant that entered a state.
func (m *instruments) GrantState(provider, reason string, to api.State) {
	m.states.WithLabelValues(provider, string(to), reason).Inc()
}

// Call records a call to a provider.
func (m *instruments) Call(provider string, op provider.Op, r provider.Result, took time.Duration) {
	m.calls.WithLabelValues(provider, string(op), string(r.Outcome), r.Reason).Observe(took.Seconds())
}

// AddressReused counts a new pod at an address with a leaked grant.
func (m *instruments) AddressReused(permission string) { m.reused.WithLabelValues(permission).Inc() }

func (m *instruments) request(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// storeCollector is a collector that counts the rows of the store.
type storeCollector struct {
	store                *store.Store
	applications, leaked *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s *storeCollector) Describe(c chan<- *prometheus.Desc) { c <- s.applications; c <- s.leaked }

// Collect implements prometheus.Collector.
func (s *storeCollector) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	states, err := s.store.View(ctx).CountStates()
	if err != nil {
		c <- prometheus.NewInvalidMetric(s.applications, err)
		return
	}
	for _, state := range []api.State{api.Requested, api.Applying, api.Granted, api.Denied, api.Failed, api.Revoking, api.Revoked, api.Leaked} {
		c <- prometheus.MustNewConstMetric(s.applications, prometheus.GaugeValue, float64(states[state]), string(state))
	}
	leaks, err := s.store.View(ctx).LeakedByProvider()
	if err != nil {
		c <- prometheus.NewInvalidMetric(s.leaked, err)
		return
	}
	for provider, n := range leaks {
		c <- prometheus.MustNewConstMetric(s.leaked, prometheus.GaugeValue, float64(n), provider)
	}
}
