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
	"os"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"k8s.io/client-go/transport"
)

const (
	// connectTimeout is short because the Broker is in the same cluster: an
	// address that accepts no connection within this time is unreachable.
	connectTimeout = 3 * time.Second
	// idleConns is the maximum number of idle connections to the Broker: one for each worker of the six queues.
	idleConns = 5*defaultWorkers + podFinishedWorkers
	// maxResponse is how many bytes of a response are read so that its connection
	// can be reused. A Broker responds without a body.
	maxResponse = 64 << 10
)

// client posts events to one endpoint.
type client struct {
	endpoint  Endpoint
	http      http.Client
	transport *http.Transport
}

func newClient(e Endpoint) (*client, error) {
	base := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		MaxIdleConnsPerHost: idleConns,
		IdleConnTimeout:     90 * time.Second,
	}
	if e.CACerts != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read system certificates: %w", err)
		}
		if !pool.AppendCertsFromPEM([]byte(e.CACerts)) {
			return nil, fmt.Errorf("parse CA certificates of %s: not PEM", e.URL)
		}
		base.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	authenticated, err := withToken(e, base)
	if err != nil {
		return nil, err
	}
	return &client{
		endpoint:  e,
		transport: base,
		http: http.Client{
			// The propagator is explicit and not the global one, so that a process
			// that exports no traces still propagates them.
			Transport: otelhttp.NewTransport(authenticated, otelhttp.WithPropagators(propagation.TraceContext{})),
			// A Broker does not redirect, and following a redirect could lose the body.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// withToken adds the token of the file to each request. The file is read again every
// minute, because the kubelet renews it.
func withToken(e Endpoint, base http.RoundTripper) (http.RoundTripper, error) {
	if e.TokenFile == "" {
		return base, nil
	}
	if _, err := os.Stat(e.TokenFile); err != nil {
		return nil, fmt.Errorf("the Broker %s requires a token: mount one with its audience (docs/overlays.md, oidc): %w", e.URL, err)
	}
	return transport.TokenSourceWrapTransport(transport.NewCachedFileTokenSource(e.TokenFile))(base), nil
}

// post sends the event once, in binary mode, and returns nil if the Broker
// accepted it.
func (c *client) post(ctx context.Context, e cloudevents.Event) error {
	req, err := cehttp.NewHTTPRequestFromEvent(ctx, c.endpoint.URL, e)
	if err != nil {
		return fmt.Errorf("post event %s: %w", e.Type(), &invalidEventError{err})
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("post event %s: %w", e.Type(), err)
	}
	// Errors of the body are irrelevant: the status decides.
	_, _ = io.CopyN(io.Discard, resp.Body, maxResponse)
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("post event %s: %w", e.Type(), &StatusError{Code: resp.StatusCode})
	}
	return nil
}

// close closes idle connections. Requests in flight are not interrupted.
func (c *client) close() { c.transport.CloseIdleConnections() }

// StatusError reports a response of the Broker that does not accept the event.
type StatusError struct {
	// Code is the HTTP status code.
	Code int
}

func (e *StatusError) Error() string { return fmt.Sprintf("the broker answered %d", e.Code) }

// Permanent reports whether the Broker will never accept the event. 404 and 401 are not
// permanent: a Broker's ingress answers them until it knows a new Broker, and the keys of OIDC.
func (e *StatusError) Permanent() bool {
	switch e.Code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Code/100 == 3 || e.Code/100 == 4
}

// invalidEventError reports an event that cannot be encoded as a request.
type invalidEventError struct{ err error }

func (e *invalidEventError) Error() string { return e.err.Error() }
func (e *invalidEventError) Unwrap() error { return e.err }

// unsignedError reports an event that could not be signed.
type unsignedError struct{ err error }

func (e *unsignedError) Error() string { return "sign event: " + e.err.Error() }
func (e *unsignedError) Unwrap() error { return e.err }

// The results of an attempt, as metric labels.
const (
	resultAccepted    = "accepted"
	resultRefused     = "refused"     // the Broker's error is permanent
	resultFailed      = "failed"      // the Broker's error is transient
	resultTimeout     = "timeout"     // no response in time
	resultUnreachable = "unreachable" // no connection, or a broken one
	resultNoBroker    = "no_broker"
	resultUnsigned    = "unsigned" // its key could not be read
	resultInvalid     = "invalid"  // not an event
)

func resultOf(err error) string {
	var status *StatusError
	switch {
	case err == nil:
		return resultAccepted
	case errors.As(err, new(*NoBrokerError)):
		return resultNoBroker
	case errors.As(err, new(*unsignedError)):
		return resultUnsigned
	case errors.As(err, new(*invalidEventError)):
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
