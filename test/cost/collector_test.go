//go:build controlplane

package cost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"knative.dev/pkg/observability/tracing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/controlplane"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/freeport"
)

// collectorConfig is the configuration of the OpenTelemetry Collector: it receives OTLP and sends JSON.
const collectorConfig = `yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, encoding: json, compression: none}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}}
`

// collector has the spans that the OpenTelemetry Collector received.
type collector struct {
	mu    sync.Mutex
	spans []span
}

// span is a span as OTLP writes it in JSON.
type span struct {
	TraceID    string `json:"traceId"`
	ID         string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Name       string `json:"name"`
	Start      int64  `json:"startTimeUnixNano,string"`
	End        int64  `json:"endTimeUnixNano,string"`
	Attributes []struct {
		Key   string `json:"key"`
		Value struct {
			String string `json:"stringValue"`
		} `json:"value"`
	} `json:"attributes"`
}

// attribute returns an attribute that is a string.
func (s span) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String
		}
	}
	return ""
}

// start starts a collector and turns traces on.
func (c *collector) start(ctx context.Context, p *controlplane.ControlPlane) error {
	built, err := p.Build(ctx, "collector")
	if err != nil {
		return err
	}
	port, err := freeport.Find(ctx)
	if err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	sink := httptest.NewServer(c) // until the process ends
	config := fmt.Sprintf(collectorConfig, address, sink.URL)
	if err := p.RunProgram(filepath.Join(built.Binaries, "collector"), nil, "--config", config); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return true, connection.Close()
	})
	if err != nil {
		return fmt.Errorf("wait for the collector: %w", err)
	}
	otel.SetTextMapPropagator(tracing.DefaultTextMapPropagator()) // as the processes do
	return errors.Join(os.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100"), configureTraces(ctx, "http://"+address))
}

func configureTraces(ctx context.Context, endpoint string) error {
	c, err := clients.Connect()
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"data":{"tracing-protocol":"grpc","tracing-endpoint":%q,"tracing-sampling-rate":"1"}}`, endpoint)
	_, err = c.Kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).
		Patch(ctx, "config-observability", types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return err
}

// ServeHTTP receives spans from the collector.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var received struct {
		Resources []struct {
			Scopes []struct {
				Spans []span `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.NewDecoder(r.Body).Decode(&received); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range received.Resources {
		for _, scope := range resource.Scopes {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}

// trace returns the spans of a trace so far.
func (c *collector) trace(id string) []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s span) bool { return s.TraceID != id })
}
