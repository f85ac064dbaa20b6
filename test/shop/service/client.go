// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace/noop"
)

// CallTimeout is how long a caller waits for an answer.
const CallTimeout = time.Second

// maxAnswer is the maximum number of bytes that are read of an answer.
const maxAnswer = 1 << 12

// Client calls one service and counts its calls as a service graph does: by
// caller, service and pod.
type Client struct {
	caller, service string
	url             string
	http            *http.Client
	calls, failed   metric.Int64Counter
	labels          []attribute.KeyValue
}

// ErrWrongAnswer says that an answer had status 200, but is not the right one.
var ErrWrongAnswer = errors.New("wrong answer")

// NewClient returns a client of a service. Target is a URL, or file:// and the
// path of a file with its endpoints. Labels are added to its metrics.
func NewClient(meters metric.MeterProvider, caller, name, target string, labels ...attribute.KeyValue) (*Client, error) {
	spec, err := SpecOf(name)
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	base := strings.TrimSuffix(target, "/")
	if path, ok := strings.CutPrefix(target, "file://"); ok {
		transport, base = &pods{next: transport, file: &endpointsFile{path: path, now: time.Now}}, "http://"+name
	} else if !strings.HasPrefix(target, "http://") {
		return nil, fmt.Errorf("address %q of service %s is neither http:// nor file://", target, name)
	}
	meter := meters.Meter("shop")
	calls, err := meter.Int64Counter("traces_service_graph_request", metric.WithDescription("Calls by caller, service and pod."))
	if err != nil {
		return nil, err
	}
	failed, err := meter.Int64Counter("traces_service_graph_request_failed", metric.WithDescription("Calls without the right answer, by caller, service and pod."))
	if err != nil {
		return nil, err
	}
	instrumented := otelhttp.NewTransport(transport, otelhttp.WithMeterProvider(meters), otelhttp.WithTracerProvider(noop.NewTracerProvider()))
	return &Client{caller: caller, service: name, url: base + spec.Route, http: &http.Client{Transport: instrumented, Timeout: CallTimeout},
		calls: calls, failed: failed, labels: labels}, nil
}

// Call makes one call and counts it. A wrong answer is a failed call.
func (c *Client) Call(ctx context.Context, id int) error {
	ctx, pod := withPod(ctx)
	err := c.get(ctx, c.url, id, pod)
	labels := metric.WithAttributes(append([]attribute.KeyValue{attribute.String("client", c.caller), attribute.String("server", c.service),
		attribute.String("server_k8s_pod_name", *pod)}, c.labels...)...)
	c.calls.Add(ctx, 1, labels)
	failure := int64(0)
	if err != nil {
		failure = 1
	}
	c.failed.Add(ctx, failure, labels)
	return err
}

// CallWrongly calls a route that the service does not have.
func (c *Client) CallWrongly(ctx context.Context, id int) {
	ctx, pod := withPod(ctx)
	_ = c.get(ctx, c.url+"-of-yesterday", id, pod)
}

func (c *Client) get(ctx context.Context, url string, id int, pod *string) error {
	labeler := &otelhttp.Labeler{}
	labeler.Add(c.labels...)
	ctx = otelhttp.ContextWithLabeler(ctx, labeler)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?id=%d", url, id), nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if name := response.Header.Get(podHeader); name != "" {
		*pod = name
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("service %s answered %s", c.service, response.Status)
	}
	var answer Answer
	if err := json.Unmarshal(body, &answer); err != nil || answer != Right(id) {
		return fmt.Errorf("service %s: %w", c.service, ErrWrongAnswer)
	}
	return nil
}
