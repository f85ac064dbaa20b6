// Package catalog lists common metrics: which series count requests and errors, and
// measure latency, CPU, memory and the health of pods. Resolve selects from them by the
// series that exist.
package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// Signal is what a metric says about a pod. Several metrics of Errors, or of Latency, are
// alternatives: one with enough data is enough for a pass. Each of Custom is required.
type Signal string

const (
	// Errors is the share of requests that fail.
	Errors Signal = "errors"
	// Latency is the time that requests take.
	Latency Signal = "latency"
	// Outgoing is about calls to other services.
	Outgoing Signal = "outgoing"
	// Resources is about CPU, memory, threads and requests in progress.
	Resources Signal = "resources"
	// Health is about restarts, kills and readiness.
	Health Signal = "health"
	// Callers is what callers of the service see.
	Callers Signal = "callers"
	// Custom is a metric of the MetricCheck.
	Custom Signal = "custom"
)

// Metric is a metric to compare.
type Metric struct {
	v1alpha1.Metric
	Signal Signal
	// Unit is the unit of the value.
	Unit string
	// WarmUp reports whether the start of a pod is not compared.
	WarmUp bool
	// Sustained reports whether a change must last: a short disturbance changes the value for
	// a minute or more.
	Sustained bool
	// PerRequest reports whether the value depends on the number of requests.
	PerRequest bool
}

// Found is the name of existing series, and the values of their labels.
type Found struct {
	Name   string
	Labels map[string][]string
}

// GroupLabels are the labels whose values Resolve needs.
var GroupLabels = slices.Concat([]string{"__name__", "span_kind", "reporter", "direction", "container", "container_name"}, statusLabels)

var statusLabels = []string{"http_response_status_code", "http_status_code", "rpc_grpc_status_code", "rpc_response_status_code",
	"grpc_code", "grpc_status", "response_code", "status_code", "code", "http_status", "status", "response_code_class", "outcome", "classification", "grpc_response_status"}

var statusLabelsOfSpans = []string{"status_code", "http_response_status_code", "http_status_code"}

// statusLabelsOf has the labels with a status of the families in which not each series has the same ones. In
// series of gRPC, a label with the status of HTTP is absent or has 200. A request is bad if one label says so.
var statusLabelsOf = map[string][]string{
	"spans":        statusLabelsOfSpans,
	"spans-client": statusLabelsOfSpans,
	"istio":        {"response_code", "grpc_response_status"},
	"linkerd":      {"classification", "grpc_status", "status_code"},
}

// Bad values of labels with a status. A 4xx status is the fault of the caller, and has a
// separate metric.
const (
	badHTTP   = `5..|5xx`
	badClient = `4..|4xx|CLIENT_ERROR`
	badWord   = `(?i:error|errors|err|fail|failed|failure|exception|server_error|status_code_error)`
	badGRPC   = `2|4|8|12|13|14|15|(?i:unknown|deadline_?exceeded|resource_?exhausted|unimplemented|internal|unavailable|data_?loss)`
)

func badValues(label string) string {
	switch label {
	case "grpc_code", "grpc_status", "grpc_response_status", "rpc_grpc_status_code", "rpc_response_status_code":
		return badGRPC
	case "response_code":
		return "0|" + badHTTP
	case "http_response_status_code", "http_status_code", "http_status", "response_code_class":
		return badHTTP
	}
	return badHTTP + "|" + badWord
}

// family is a rule for names of series that count requests.
type family struct {
	name    string
	pattern *regexp.Regexp
	signal  Signal
	extra   string // matchers that belong to the family
}

const unitPart = `(?:_(?:seconds|milliseconds|microseconds|ms|s))?`

var families = []family{
	{"istio", regexp.MustCompile(`^istio_(?:requests_total|request_duration_(?:milliseconds|seconds)_bucket)$`), Errors, `reporter="destination"`},
	{"linkerd", regexp.MustCompile(`^response_(?:total|latency_ms_bucket)$`), Errors, `direction="inbound"`},
	{"http-server", regexp.MustCompile(`^http_server_(?:request_)?duration` + unitPart + `_(?:count|bucket)$`), Errors, ""},
	{"rpc-server", regexp.MustCompile(`^rpc_server_(?:call_)?duration` + unitPart + `_(?:count|bucket)$`), Errors, ""},
	{"grpc-server", regexp.MustCompile(`^grpc_server_(?:handled_total|handling_seconds_bucket)$`), Errors, ""},
	{"spans", regexp.MustCompile(`^(?:traces_)?(?:span_?metrics_)?(?:calls(?:_total)?|(?:duration|latency)` + unitPart + `_bucket)$`), Errors, `span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer"`},
	{"spans-client", regexp.MustCompile(`^(?:traces_)?(?:span_?metrics_)?calls(?:_total)?$`), Outgoing, `span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer"`},
	{"http-client", regexp.MustCompile(`^http_client_(?:request_)?duration` + unitPart + `_count$`), Outgoing, ""},
	{"rpc-client", regexp.MustCompile(`^rpc_client_(?:call_)?duration` + unitPart + `_count$`), Outgoing, ""},
	{"grpc-client", regexp.MustCompile(`^grpc_client_handled_total$`), Outgoing, ""},
	// queue-proxy of Knative Serving 1.20.1 and newer, of 1.19 and 1.20.0, which count the time in
	// whole seconds, and of 1.18 and older.
	{knative, regexp.MustCompile(`^(?:kn_serving_invocation_duration` + unitPart + `_(?:count|bucket)|kn_queueproxy_app_duration` + unitPart + `_count|(?:\w+_)?revision_(?:app_)?request_(?:count|latencies_bucket))$`), Errors, ""},
	{"traefik", regexp.MustCompile(`^traefik_service_(?:requests_total|request_duration_seconds_bucket)$`), Errors, ""},
	{"nginx", regexp.MustCompile(`^nginx_ingress_controller_(?:requests|request_duration_seconds_bucket)$`), Errors, ""},
	{"requests", regexp.MustCompile(`^(?:\w+_)?requests?(?:_total|_count|_count_total|_(?:duration|latency|time|seconds)\w*_(?:count|bucket)|_(?:seconds|milliseconds)_(?:count|bucket)|_(?:count|bucket))$`), Errors, ""},
}

// notRequests are names like those of request counters that do not count requests of the service.
var notRequests = regexp.MustCompile(`^(?:promhttp|prometheus|scrape|net_conntrack|go_|apiserver|rest_client|workqueue|kube_|container_|otelcol)|client|outgoing|outbound|upstream|in_flight|active|_size|body`)

// familyOf returns all families whose pattern the name matches. Family requests is among
// them only if no other family matches.
func familyOf(f Found) []family {
	var out []family
	for _, fam := range families {
		if !fam.pattern.MatchString(f.Name) || fam.name == "requests" && (notRequests.MatchString(f.Name) || len(out) > 0) {
			continue
		}
		out = append(out, fam)
	}
	return out
}

// statusesOf returns the labels with the status of a request.
func statusesOf(fam family, f Found) []string {
	exists := func(label string) bool { return len(f.Labels[label]) > 0 }
	var out []string
	for _, l := range statusLabelsOf[fam.name] {
		if exists(l) {
			out = append(out, l)
		}
	}
	if i := slices.IndexFunc(statusLabels, exists); len(out) == 0 && i >= 0 {
		out = statusLabels[i : i+1]
	}
	return out
}

func selector(name string, matchers ...string) string {
	return name + "{" + join(append(slices.Clone(matchers), "{{pods}}")...) + "}"
}

// join joins the matchers that are not empty.
func join(matchers ...string) string {
	return strings.Join(slices.DeleteFunc(matchers, func(m string) bool { return m == "" }), ",")
}

// Resolve returns the metrics to judge for the series found.
func Resolve(found []Found) []Metric {
	sort.Slice(found, func(i, j int) bool { return found[i].Name < found[j].Name })
	var out []Metric
	var incoming, outgoing []Metric
	proxy := hasQueueProxy(found)
	for _, f := range found {
		for _, fam := range familyOf(f) {
			extra := fam.extra
			if label, _, ok := strings.Cut(extra, "="); ok && len(f.Labels[label]) == 0 {
				if fam.name == "spans-client" || fam.name == "istio" {
					continue
				}
				extra = ""
			}
			if proxy && fam.name != knative {
				extra = join(extra, notQueueProxy)
			}
			if strings.HasSuffix(f.Name, "_bucket") {
				out = append(out, latency(fam, f.Name, extra))
				continue
			}
			metrics := requests(fam, f, extra)
			out = append(out, metrics...)
			count := Metric{Metric: v1alpha1.Metric{Name: fam.name, Query: selector(f.Name, extra)}}
			if fam.signal == Outgoing {
				outgoing = append(outgoing, count)
			} else {
				incoming = append(incoming, count)
			}
		}
	}
	if len(incoming) > 0 {
		for _, o := range outgoing {
			out = append(out, calls(o, incoming))
		}
	}
	out = append(out, resources(found)...)
	return unique(out)
}

func requests(fam family, f Found, extra string) []Metric {
	statuses := statusesOf(fam, f)
	if len(statuses) == 0 {
		return nil
	}
	query := selector(f.Name, extra)
	matching := func(statuses []string, matcher func(status string) string) string {
		var selectors []string
		for _, status := range statuses {
			selectors = append(selectors, selector(f.Name, extra, matcher(status)))
		}
		return strings.Join(selectors, " or ")
	}
	m := Metric{Signal: fam.signal, Unit: "ratio", Metric: v1alpha1.Metric{
		Name: fam.name + "-errors", Kind: v1alpha1.KindRatio, Query: query, Bad: matching(statuses, fam.failures),
		Direction: v1alpha1.DirectionHigher, Weight: v1alpha1.WeightAlone,
		SmallestChange: &v1alpha1.Change{Relative: "50%", Absolute: "0.005"},
	}}
	out := []Metric{m}
	withClientErrors := slices.DeleteFunc(slices.Clone(statuses), func(status string) bool {
		return !slices.ContainsFunc(f.Labels[status], func(v string) bool {
			return len(v) == 3 && v[0] == '4' || v == "4xx" || v == "CLIENT_ERROR"
		})
	})
	if len(withClientErrors) > 0 && fam.signal == Errors {
		m.Name = fam.name + "-rejected"
		m.Bad = matching(withClientErrors, func(status string) string { return fmt.Sprintf("%s=~%q", status, badClient) })
		m.CausedByCallers = true
		m.SmallestChange = &v1alpha1.Change{Relative: "100%", Absolute: "0.05"}
		out = append(out, m)
	}
	return out
}

// failures returns the matcher of failed requests by one label.
func (fam family) failures(status string) string {
	switch {
	case fam.name == "http-client" && (status == "http_response_status_code" || status == "http_status_code"):
		// Calls without an answer have no status.
		return status + `!~"1..|2..|3.."`
	case fam.signal == Outgoing:
		// Rejected calls are the fault of their caller.
		return fmt.Sprintf("%s=~%q", status, "4..|4xx|"+badValues(status))
	default:
		return fmt.Sprintf("%s=~%q", status, badValues(status))
	}
}

func latency(fam family, name, extra string) Metric {
	m := Metric{Signal: Latency, Unit: latencyUnit(name), WarmUp: true, Metric: v1alpha1.Metric{
		Name: fam.name + "-latency", Kind: v1alpha1.KindLatency, Query: selector(name, extra),
		Direction: v1alpha1.DirectionHigher, Weight: v1alpha1.WeightAlone,
		SmallestChange: &v1alpha1.Change{Relative: "20%", Absolute: "0.002"},
	}}
	if m.Unit == "milliseconds" {
		m.SmallestChange.Absolute = "2"
	}
	return m
}

// latencyUnit returns the unit of a histogram. Without a unit in their names, the former histograms of OpenTelemetry
// for servers are in milliseconds, and those that replaced them in seconds.
func latencyUnit(name string) string {
	switch {
	case strings.Contains(name, "milliseconds"), strings.Contains(name, "_ms_"), strings.Contains(name, "latencies"),
		name == "http_server_duration_bucket", name == "rpc_server_duration_bucket":
		return "milliseconds"
	default:
		return "seconds"
	}
}

// calls compares the outgoing calls per request: a version that omits calls reports no
// errors. queue-proxy counts all requests.
func calls(outgoing Metric, incoming []Metric) Metric {
	in := incoming[0]
	prefix, _, _ := strings.Cut(outgoing.Name, "-")
	for _, m := range incoming {
		if strings.HasPrefix(m.Name, prefix) {
			in = m
		}
	}
	if i := slices.IndexFunc(incoming, func(m Metric) bool { return m.Name == knative }); i >= 0 {
		in = incoming[i]
	}
	return Metric{Signal: Outgoing, Unit: "calls per request", WarmUp: true, Metric: v1alpha1.Metric{
		Name: outgoing.Name + "-calls", Kind: v1alpha1.KindRatio, Query: in.Query, Bad: outgoing.Query,
		Direction: v1alpha1.DirectionEither, Weight: v1alpha1.WeightAlone,
		SmallestChange: &v1alpha1.Change{Relative: "25%", Absolute: "0.02"},
	}}
}

func unique(metrics []Metric) []Metric {
	seen := map[string]int{}
	for i := range metrics {
		name := metrics[i].Name
		seen[name]++
		if n := seen[name]; n > 1 {
			metrics[i].Name = fmt.Sprintf("%s-%d", name, n)
		}
	}
	return metrics
}
