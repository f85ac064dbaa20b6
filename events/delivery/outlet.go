package delivery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
)

const (
	// connectTimeout is short, because a Broker is in the same cluster: who
	// does not accept a connection now is gone.
	connectTimeout = 3 * time.Second
	// idleConns is how many connections to the Broker are kept open.
	idleConns = 32
	// maxAnswer is how many bytes of an answer are read, so that the
	// connection can be used again. A Broker answers without a body.
	maxAnswer = 64 << 10
)

// outlet posts events to one endpoint.
type outlet struct {
	endpoint  Endpoint
	client    http.Client
	transport *http.Transport
}

func newOutlet(e Endpoint) (*outlet, error) {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     90 * time.Second,
	}
	if e.CACerts != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the certificates of the system: %w", err)
		}
		if !pool.AppendCertsFromPEM([]byte(e.CACerts)) {
			return nil, fmt.Errorf("%s: its CA certificates are not PEM", e.URL)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &outlet{
		endpoint:  e,
		transport: transport,
		client: http.Client{
			// Named here and not left to the process: the trace goes on through
			// a binary that does not export traces itself.
			Transport: otelhttp.NewTransport(transport, otelhttp.WithPropagators(propagation.TraceContext{})),
			// A Broker does not redirect, and a POST that is followed loses its body.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// post sends the event once, in binary mode, and returns nil when it was
// accepted.
func (o *outlet) post(ctx context.Context, e cloudevents.Event) error {
	req, err := cehttp.NewHTTPRequestFromEvent(ctx, o.endpoint.URL, e)
	if err != nil {
		return fmt.Errorf("post event %s: %w", e.Type(), &invalidEventError{err})
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return fmt.Errorf("post event %s: %w", e.Type(), err)
	}
	// What follows the status says nothing: the event is accepted or not.
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("post event %s: %w", e.Type(), &StatusError{Code: resp.StatusCode})
	}
	return nil
}

// close lets requests that are under way end.
func (o *outlet) close() { o.transport.CloseIdleConnections() }

// StatusError says that the Broker answered and did not accept the event.
type StatusError struct {
	// Code is the HTTP status.
	Code int
}

func (e *StatusError) Error() string { return fmt.Sprintf("the broker answered %d", e.Code) }

// Permanent says that the same event will not be accepted later either. 404 is
// what a Broker's ingress answers until it has heard of a new Broker.
func (e *StatusError) Permanent() bool {
	switch e.Code {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Code/100 == 3 || e.Code/100 == 4
}

// invalidEventError says that no request can be made of the event.
type invalidEventError struct{ err error }

func (e *invalidEventError) Error() string { return e.err.Error() }
func (e *invalidEventError) Unwrap() error { return e.err }

// The results of a try, as the metrics name them.
const (
	resultAccepted    = "accepted"
	resultRefused     = "refused"     // will never be accepted
	resultFailed      = "failed"      // an answer that may become another one
	resultTimeout     = "timeout"     // no answer in time
	resultUnreachable = "unreachable" // no connection, or one that broke
	resultNoBroker    = "no_broker"
	resultInvalid     = "invalid" // not an event
)

func resultOf(err error) string {
	var status *StatusError
	var none *NoBrokerError
	var invalid *invalidEventError
	switch {
	case err == nil:
		return resultAccepted
	case errors.As(err, &none):
		return resultNoBroker
	case errors.As(err, &invalid):
		return resultInvalid
	case errors.As(err, &status) && status.Permanent():
		return resultRefused
	case errors.As(err, &status):
		return resultFailed
	case errors.Is(err, context.DeadlineExceeded):
		return resultTimeout
	default:
		return resultUnreachable
	}
}
