package centre

import (
	"context"
	"crypto/tls"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/access"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// instruments are the metrics of /metrics. Labels are what is configured or constant, such
// as providers, permissions, clusters and reasons, never pods or users.
type instruments struct {
	registry *prometheus.Registry
	states   *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	reused   *prometheus.CounterVec
	reports  *prometheus.CounterVec
	requests *prometheus.HistogramVec
}

func newInstruments(s *store.Store, issuers []*access.OIDC) *instruments {
	m := &instruments{
		registry: prometheus.NewRegistry(),
		states:   counter("breakwater_permission_centre_grant_transitions_total"),
		calls:    histogram("breakwater_permission_centre_provider_call_duration_seconds"),
		reused:   counter("breakwater_permission_centre_leaked_grants_at_new_pods_total"),
		reports:  counter("breakwater_permission_centre_pod_report_pages_total"),
		requests: histogram("breakwater_permission_centre_request_duration_seconds"),
	}
	collector := &storeCollector{
		store:        s,
		applications: description("breakwater_permission_centre_applications"),
		leaked:       description("breakwater_permission_centre_leaked_grants"),
		reported:     description("breakwater_permission_centre_last_pod_report_timestamp_seconds"),
		free:         description("breakwater_permission_centre_store_free_bytes"),
	}
	build, constant := metrics.Find("breakwater_build_info"), prometheus.Labels{}
	for i, value := range metrics.BuildLabels() {
		constant[build.Labels[i]] = value
	}
	m.registry.MustRegister(m.states, m.calls, m.reused, m.reports, m.requests, collector,
		&issuerCollector{issuers, description("breakwater_permission_centre_oidc_issuer_unreachable")},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: build.Name, Help: build.Help, ConstLabels: constant}, func() float64 { return 1 }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observeCertificate adds the metric with the expiry time of the certificate of the
// REST interface.
func (m *instruments) observeCertificate(config *tls.Config) {
	d := metrics.Find(servingcert.ExpiryMetric)
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: d.Name, Help: d.Help, ConstLabels: prometheus.Labels{d.Labels[0]: "permission-centre"}},
		func() float64 { return float64(servingcert.Expiry(config)) }))
}

func counter(name string) *prometheus.CounterVec {
	d := metrics.Find(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

func histogram(name string) *prometheus.HistogramVec {
	d := metrics.Find(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.Bounds}, d.Labels)
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

// LeakedGrantAtNewPod counts a leaked grant at an address of a pod that requests permissions.
func (m *instruments) LeakedGrantAtNewPod(permission string) {
	m.reused.WithLabelValues(permission).Inc()
}

// PodReportPage counts a page of a report of existing pods.
func (m *instruments) PodReportPage(cluster, result string) {
	m.reports.WithLabelValues(cluster, result).Inc()
}

func (m *instruments) request(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(methodLabel(method), route, strconv.Itoa(status)).Observe(took.Seconds())
}

// methodLabel returns the value of the label for a method. A client without a token can invent
// methods, and a series is kept until the process ends.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return "other"
	}
}

// storeCollector is a collector that counts the rows of the store, and the bytes that it can still write.
type storeCollector struct {
	store                                *store.Store
	applications, leaked, reported, free *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s *storeCollector) Describe(c chan<- *prometheus.Desc) {
	c <- s.applications
	c <- s.leaked
	c <- s.reported
	c <- s.free
}

// Collect implements prometheus.Collector.
func (s *storeCollector) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	states, err := s.store.View(ctx).CountStates()
	if err != nil {
		c <- prometheus.NewInvalidMetric(s.applications, err)
		return
	}
	for _, state := range api.States() {
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
	reports, err := s.store.View(ctx).LastReports()
	if err != nil {
		c <- prometheus.NewInvalidMetric(s.reported, err)
		return
	}
	for cluster, at := range reports {
		seconds := 0.0
		if !at.IsZero() {
			seconds = float64(at.UnixMilli()) / 1000
		}
		c <- prometheus.MustNewConstMetric(s.reported, prometheus.GaugeValue, seconds, cluster)
	}
	if s.store.Shared() {
		return // the permission centre does not know the volume of PostgreSQL
	}
	free, err := s.store.FreeBytes(ctx)
	if err != nil {
		c <- prometheus.NewInvalidMetric(s.free, err)
		return
	}
	c <- prometheus.MustNewConstMetric(s.free, prometheus.GaugeValue, float64(free))
}

// issuerCollector is a collector of the state of OIDC issuers.
type issuerCollector struct {
	issuers     []*access.OIDC
	unreachable *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (i *issuerCollector) Describe(c chan<- *prometheus.Desc) { c <- i.unreachable }

// Collect implements prometheus.Collector.
func (i *issuerCollector) Collect(c chan<- prometheus.Metric) {
	unreachable := map[string]float64{} // several clientIDs may have one issuer
	for _, issuer := range i.issuers {
		value := 0.0
		if issuer.Failure() != nil {
			value = 1
		}
		unreachable[issuer.Issuer()] = max(unreachable[issuer.Issuer()], value)
	}
	for issuer, value := range unreachable {
		c <- prometheus.MustNewConstMetric(i.unreachable, prometheus.GaugeValue, value, issuer)
	}
}
