package catalog

import (
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheDefaultMetricsFollowFromTheSeriesThatExist(t *testing.T) {
	label := func(name string, values ...string) map[string][]string { return map[string][]string{name: values} }
	for name, c := range map[string]struct {
		found []Found
		// want has the query of each metric, or its query and that of its bad events.
		want map[string][]string
	}{
		"OpenTelemetry HTTP": {[]Found{{"http_server_request_duration_seconds_count", label("http_response_status_code", "200", "500")},
			{"http_server_request_duration_seconds_bucket", nil}}, map[string][]string{
			"http-server-errors":  {`http_server_request_duration_seconds_count{{{pods}}}`, `http_server_request_duration_seconds_count{http_response_status_code=~"5..|5xx",{{pods}}}`},
			"http-server-latency": {`http_server_request_duration_seconds_bucket{{{pods}}}`, ""}}},
		"OpenTelemetry HTTP, former names, with rejected requests": {[]Found{{"http_server_duration_milliseconds_count", label("http_status_code", "200", "404")}}, map[string][]string{
			"http-server-errors":   {`http_server_duration_milliseconds_count{{{pods}}}`, `http_server_duration_milliseconds_count{http_status_code=~"5..|5xx",{{pods}}}`},
			"http-server-rejected": {`http_server_duration_milliseconds_count{{{pods}}}`, `http_server_duration_milliseconds_count{http_status_code=~"4..|4xx|CLIENT_ERROR",{{pods}}}`}}},
		"spans without a kind": {[]Found{{"calls_total", label("status_code", "STATUS_CODE_UNSET")}}, map[string][]string{
			"spans-errors": {`calls_total{{{pods}}}`, `calls_total{status_code=~"5..|5xx|(?i:error|errors|err|fail|failed|failure|exception|server_error|status_code_error)",{{pods}}}`}}},
		"spans of HTTP and of other calls": {[]Found{{"calls_total", map[string][]string{"span_kind": {"SPAN_KIND_SERVER", "SPAN_KIND_CLIENT"},
			"status_code": {"STATUS_CODE_UNSET", "STATUS_CODE_ERROR"}, "http_status_code": {"200", "404"}}}}, map[string][]string{
			"spans-errors":        {`calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",{{pods}}}`, `calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",status_code=~"5..|5xx|(?i:error|errors|err|fail|failed|failure|exception|server_error|status_code_error)",{{pods}}} or calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",http_status_code=~"5..|5xx",{{pods}}}`},
			"spans-rejected":      {`calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",{{pods}}}`, `calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",http_status_code=~"4..|4xx|CLIENT_ERROR",{{pods}}}`},
			"spans-client-errors": {`calls_total{span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer",{{pods}}}`, `calls_total{span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer",status_code=~"4..|4xx|5..|5xx|(?i:error|errors|err|fail|failed|failure|exception|server_error|status_code_error)",{{pods}}} or calls_total{span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer",http_status_code=~"4..|4xx|5..|5xx",{{pods}}}`},
			"spans-client-calls":  {`calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",{{pods}}}`, `calls_total{span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer",{{pods}}}`}}},
		"spans with the status of HTTP only": {[]Found{{"calls_total", map[string][]string{"span_kind": {"SPAN_KIND_SERVER"}, "http_status_code": {"200"}}}}, map[string][]string{
			"spans-errors":        {`calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",{{pods}}}`, `calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",http_status_code=~"5..|5xx",{{pods}}}`},
			"spans-client-errors": {`calls_total{span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer",{{pods}}}`, `calls_total{span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer",http_status_code=~"4..|4xx|5..|5xx",{{pods}}}`},
			"spans-client-calls":  {`calls_total{span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER|server|consumer",{{pods}}}`, `calls_total{span_kind=~"SPAN_KIND_CLIENT|SPAN_KIND_PRODUCER|client|producer",{{pods}}}`}}},
		"Istio with gRPC": {[]Found{{"istio_requests_total", map[string][]string{"reporter": {"destination"}, "response_code": {"200"}, "grpc_response_status": {"0", "13"}}}}, map[string][]string{
			"istio-errors": {`istio_requests_total{reporter="destination",{{pods}}}`, `istio_requests_total{reporter="destination",response_code=~"0|5..|5xx",{{pods}}}` +
				` or istio_requests_total{reporter="destination",grpc_response_status=~"2|4|8|12|13|14|15|(?i:unknown|deadline_?exceeded|resource_?exhausted|unimplemented|internal|unavailable|data_?loss)",{{pods}}}`}}},
		"Linkerd with HTTP and gRPC": {[]Found{{"response_total", map[string][]string{"direction": {"inbound"}, "classification": {"failure", "success"}, "grpc_status": {"0"}, "status_code": {"200", "404"}}}}, map[string][]string{
			"linkerd-errors": {`response_total{direction="inbound",{{pods}}}`, `response_total{direction="inbound",classification=~"5..|5xx|(?i:error|errors|err|fail|failed|failure|exception|server_error|status_code_error)",{{pods}}}` +
				` or response_total{direction="inbound",grpc_status=~"2|4|8|12|13|14|15|(?i:unknown|deadline_?exceeded|resource_?exhausted|unimplemented|internal|unavailable|data_?loss)",{{pods}}} or response_total{direction="inbound",status_code=~"5..|5xx|(?i:error|errors|err|fail|failed|failure|exception|server_error|status_code_error)",{{pods}}}`},
			"linkerd-rejected": {`response_total{direction="inbound",{{pods}}}`, `response_total{direction="inbound",status_code=~"4..|4xx|CLIENT_ERROR",{{pods}}}`}}},
		"Istio counts at the destination only": {[]Found{{"istio_requests_total", map[string][]string{"reporter": {"destination", "source"}, "response_code": {"200"}}}}, map[string][]string{
			"istio-errors": {`istio_requests_total{reporter="destination",{{pods}}}`, `istio_requests_total{reporter="destination",response_code=~"0|5..|5xx",{{pods}}}`}}},
		"generic requests, and not those of the metrics handler": {[]Found{{"http_requests_total", label("code", "200")}, {"promhttp_metric_handler_requests_total", label("code", "200")}}, map[string][]string{
			"requests-errors": {`http_requests_total{{{pods}}}`, `http_requests_total{code=~"5..|5xx|(?i:error|errors|err|fail|failed|failure|exception|server_error|status_code_error)",{{pods}}}`}}},
		"CPU of containers, not of their sum": {[]Found{{"container_cpu_usage_seconds_total", label("container", "app")}, {"process_cpu_seconds_total", nil}}, map[string][]string{
			"cpu": {`container_cpu_usage_seconds_total{container!="",container!="POD",{{pods}}}`, ""}}},
		"memory of the process, if there is no cAdvisor": {[]Found{{"process_resident_memory_bytes", nil}}, map[string][]string{
			"memory": {`process_resident_memory_bytes{{{pods}}}`, ""}}},
		"nothing that is known": {[]Found{{"orders_in_basket", nil}}, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			for _, m := range Resolve(c.found) {
				got[m.Name] = []string{m.Query, m.Bad}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryFamilyOfRequestsIsKnown(t *testing.T) {
	for name, want := range map[string]string{
		"http_server_request_duration_seconds_count":               "http-server",
		"http_server_duration_count":                               "http-server",
		"rpc_server_duration_milliseconds_count":                   "rpc-server",
		"grpc_server_handled_total":                                "grpc-server",
		"traces_spanmetrics_calls_total":                           "spans",
		"traces_span_metrics_calls_total":                          "spans",
		"traces_spanmetrics_latency_bucket":                        "spans",
		"traces_span_metrics_duration_milliseconds_bucket":         "spans",
		"istio_request_duration_milliseconds_bucket":               "istio",
		"kn_serving_invocation_duration_seconds_count":             "knative",
		"kn_serving_invocation_duration_seconds_bucket":            "knative",
		"kn_queueproxy_app_duration_seconds_count":                 "knative",
		"revision_app_request_count":                               "knative",
		"revision_request_latencies_bucket":                        "knative",
		"traefik_service_requests_total":                           "traefik",
		"nginx_ingress_controller_requests":                        "nginx",
		"nginx_ingress_controller_request_duration_seconds_bucket": "nginx",
		"response_latency_ms_bucket":                               "linkerd",
		"http_requests_total":                                      "requests",
		"http_request_duration_seconds_bucket":                     "requests",
		"flask_http_request_total":                                 "requests",
		"http_server_requests_seconds_count":                       "requests",
		"http_client_request_duration_seconds_count":               "http-client",
	} {
		families := familyOf(Found{Name: name})
		names := make([]string, 0, len(families))
		for _, f := range families {
			names = append(names, f.name)
		}
		sort.Strings(names)
		if len(names) == 0 || names[0] != want {
			t.Errorf("%s is of %v, want %s", name, names, want)
		}
	}
}

func TestTheUnitOfALatencyFollowsFromTheName(t *testing.T) {
	const seconds, milliseconds = "seconds", "milliseconds"
	for name, want := range map[string]string{
		"http_server_request_duration_seconds_bucket": seconds,
		"http_server_request_duration_bucket":         seconds,
		"http_server_duration_milliseconds_bucket":    milliseconds,
		"http_server_duration_bucket":                 milliseconds,
		"rpc_server_call_duration_bucket":             seconds,
		"rpc_server_duration_bucket":                  milliseconds,
		"http_request_duration_bucket":                seconds,
		"istio_request_duration_milliseconds_bucket":  milliseconds,
		"response_latency_ms_bucket":                  milliseconds,
		"revision_request_latencies_bucket":           milliseconds,
		"traces_spanmetrics_latency_bucket":           seconds,
	} {
		found := Found{Name: name, Labels: map[string][]string{"reporter": {"destination"}}}
		m := Resolve([]Found{found})[0]
		if smallest := map[string]string{seconds: "0.002", milliseconds: "2"}[want]; m.Unit != want || m.SmallestChange.Absolute != smallest {
			t.Errorf("%s is in %s with a smallest change of %s, want %s in %s", name, m.Unit, m.SmallestChange.Absolute, smallest, want)
		}
	}
}
