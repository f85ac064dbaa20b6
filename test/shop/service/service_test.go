// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/breakwater-dev/breakwater/test/shop/fault"
)

// run starts a service and returns a client of it and the handler of the
// metrics of both.
func run(t *testing.T, name string, effects fault.Effects, dependencies ...string) (*Client, http.Handler, string) {
	t.Helper()
	meters, metrics, err := Telemetry(nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := SpecOf(name)
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{Spec: spec, Pod: name + "-0", Effects: effects, Speed: 10, Started: time.Now()}
	for i, url := range dependencies {
		s.Dependencies = append(s.Dependencies, client(t, meters, name, spec.Calls[i], url))
	}
	server := httptest.NewServer(s.Handler(meters, metrics))
	t.Cleanup(server.Close)
	return client(t, meters, "test", name, server.URL), metrics, server.URL
}

func client(t *testing.T, meters *metric.MeterProvider, caller, name, url string) *Client {
	t.Helper()
	c, err := NewClient(meters, caller, name, url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func shown(metrics http.Handler) string {
	w := httptest.NewRecorder()
	metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, _ := io.ReadAll(w.Body)
	return string(text)
}

// await waits until the metrics have a series: a request is counted when its
// handler ends, which may be after the caller has the answer.
func await(t *testing.T, metrics http.Handler, want string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		got := shown(metrics)
		if strings.Contains(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("metrics have no %s:\n%s", want, got)
		}
	}
}

func TestAFaultShowsInTheMetrics(t *testing.T) {
	_, _, catalogue := run(t, "catalogue", fault.Effects{})
	for tc, c := range map[string]struct {
		effects fault.Effects
		failed  bool
		want    string
	}{
		"none":              {fault.Effects{}, false, `http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/buy"`},
		"errors":            {fault.Effects{Errors: 1}, true, `http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="500"`},
		"not found":         {fault.Effects{NotFound: 1}, true, `http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404"`},
		"wrong answers":     {fault.Effects{Wrong: 1}, true, `traces_service_graph_request_failed_total{client="test",server="front",server_k8s_pod_name="front-0"} 1`},
		"missed calls":      {fault.Effects{Missed: 1}, true, `traces_service_graph_request_failed_total{client="test",server="front",server_k8s_pod_name="front-0"} 1`},
		"resets":            {fault.Effects{Resets: 1}, true, `traces_service_graph_request_failed_total{client="test",server="front",server_k8s_pod_name="front-0"} 1`},
		"timeouts":          {fault.Effects{Hangs: 1}, true, `traces_service_graph_request_failed_total{client="test",server="front",server_k8s_pod_name=""} 1`},
		"dependency errors": {fault.Effects{BadCalls: 1}, false, `http_client_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404"`},
		"extra calls":       {fault.Effects{ExtraCalls: 2}, false, `traces_service_graph_request_total{client="front",server="catalogue",server_k8s_pod_name="catalogue-0"} 3`},
	} {
		t.Run(tc, func(t *testing.T) {
			t.Parallel()
			front, metrics, _ := run(t, "front", c.effects, catalogue)
			if err := front.Call(context.Background(), 7); (err != nil) != c.failed {
				t.Errorf("call: %v", err)
			}
			await(t, metrics, c.want)
		})
	}
}

func TestAWrongAnswerIsAnErrorOfItsOwn(t *testing.T) {
	front, _, _ := run(t, "front", fault.Effects{Wrong: 1})
	if err := front.Call(context.Background(), 7); !errors.Is(err, ErrWrongAnswer) {
		t.Error(err)
	}
}

func TestARequestGoesToAPodOfTheEndpointsFile(t *testing.T) {
	_, metrics, url := run(t, "payment", fault.Effects{})
	file := filepath.Join(t.TempDir(), "payment")
	meters, own, err := Telemetry(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, meters, "cart", "payment", "file://"+file)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(context.Background(), 1); !errors.Is(err, errNoEndpoints) {
		t.Errorf("without endpoints: %v", err)
	}
	if err := os.WriteFile(file, []byte("payment-0 "+strings.TrimPrefix(url, "http://")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c = client(t, meters, "cart", "payment", "file://"+file)
	if err := c.Call(context.Background(), 1); err != nil {
		t.Error(err)
	}
	await(t, metrics, "http_server_request_duration_seconds_count")
	if want := `server_address="payment"`; !strings.Contains(shown(own), want) {
		t.Errorf("metrics of the caller have no %s", want)
	}
}

func TestAWarmUpSlowsOnlyYoungProcesses(t *testing.T) {
	s := &Service{Spec: Spec{Median: time.Second}, Speed: 1, Effects: fault.Effects{Slowdown: 3, WarmUp: time.Minute}}
	if got := s.serviceTime(0, time.Second); got != 3*time.Second {
		t.Errorf("young: %s", got)
	}
	if got := s.serviceTime(0, 2*time.Minute); got != time.Second {
		t.Errorf("old: %s", got)
	}
}

func TestEverySeriesHasTheLabelsOfThePod(t *testing.T) {
	_, metrics, err := Telemetry(map[string]string{"namespace": "shop", "pod": "front-0", "node": ""})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(shown(metrics)) {
		if !strings.HasPrefix(line, "#") && (!strings.Contains(line, `namespace="shop",pod="front-0"`) || strings.Contains(line, "node=")) {
			t.Error(line)
		}
	}
}

func TestACallHasTheLabelsOfItsClient(t *testing.T) {
	_, _, url := run(t, "payment", fault.Effects{})
	meters, metrics, err := Telemetry(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(meters, "load", "payment", url, attribute.String("namespace", "shop-1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Call(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`http_response_status_code="200",namespace="shop-1"`, `traces_service_graph_request_total{client="load",namespace="shop-1"`} {
		await(t, metrics, want)
	}
}
