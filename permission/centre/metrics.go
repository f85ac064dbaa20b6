package centre

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const namespace = "permissioncentre"

// metrics are the metrics of /metrics. Labels are providers, reasons and
// routes, never pods.
type metrics struct {
	registry *prometheus.Registry
	states   *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	reused   *prometheus.CounterVec
	requests *prometheus.HistogramVec
}

func newMetrics(s *store.Store) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		states: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "grant_states_total",
			Help: "Grants that entered a state."}, []string{"provider", "state", "reason"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "provider_call_seconds",
			Help: "Duration of calls to providers in seconds.", Buckets: []float64{.005, .02, .1, .5, 1, 5, 10, 30}}, []string{"provider", "op", "outcome", "reason"}),
		reused: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "leaked_address_reused_total",
			Help: "New pods at an address that still holds a leaked grant."}, []string{"permission"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "request_seconds",
			Help: "Duration of requests to the REST interface in seconds.", Buckets: []float64{.002, .01, .05, .2, 1, 10, 60}}, []string{"method", "route", "status"}),
	}
	m.registry.MustRegister(m.states, m.calls, m.reused, m.requests, &standing{store: s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// GrantState counts a grant that entered a state.
func (m *metrics) GrantState(provider, reason string, to api.State) {
	m.states.WithLabelValues(provider, string(to), reason).Inc()
}

// Call records a call to a provider.
func (m *metrics) Call(provider string, op provider.Op, r provider.Result, took time.Duration) {
	m.calls.WithLabelValues(provider, string(op), string(r.Outcome), r.Reason).Observe(took.Seconds())
}

// AddressReused counts a new pod at an address with a leaked grant.
func (m *metrics) AddressReused(permission string) { m.reused.WithLabelValues(permission).Inc() }

func (m *metrics) request(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// standing is a collector that counts the rows of the store.
type standing struct{ store *store.Store }

var (
	applications = prometheus.NewDesc(namespace+"_applications", "Applications by state.", []string{"state"}, nil)
	leaked       = prometheus.NewDesc(namespace+"_leaked_grants", "Grants that could not be revoked, by provider.", []string{"provider"}, nil)
)

// Describe implements prometheus.Collector.
func (s *standing) Describe(c chan<- *prometheus.Desc) { c <- applications; c <- leaked }

// Collect implements prometheus.Collector.
func (s *standing) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	states, err := s.store.View(ctx).CountStates()
	if err != nil {
		c <- prometheus.NewInvalidMetric(applications, err)
		return
	}
	for _, state := range []api.State{api.Requested, api.Applying, api.Granted, api.Denied, api.Failed, api.Revoking, api.Revoked, api.Leaked} {
		c <- prometheus.MustNewConstMetric(applications, prometheus.GaugeValue, float64(states[state]), string(state))
	}
	leaks, err := s.store.View(ctx).LeakedByProvider()
	if err != nil {
		c <- prometheus.NewInvalidMetric(leaked, err)
		return
	}
	for provider, n := range leaks {
		c <- prometheus.MustNewConstMetric(leaked, prometheus.GaugeValue, float64(n), provider)
	}
}
