package altershield

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/utils/clock"
)

// Option configures a Client.
type Option func(*options)

type options struct {
	clock     clock.PassiveClock
	meter     metric.MeterProvider
	transport http.RoundTripper
	pause     time.Duration
	closeIdle func()
}

// WithClock sets the clock of timestamps. Default: the system clock.
func WithClock(c clock.PassiveClock) Option { return func(o *options) { o.clock = c } }

// WithMeterProvider sets the provider of metrics. Default: the global one.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meter = p } }

// WithTransport sets the transport. The default one has the timeouts of Config
// and sends traceparent.
func WithTransport(t http.RoundTripper) Option { return func(o *options) { o.transport = t } }

// WithPause sets the first pause between attempts. Default: 200ms. Pauses double
// up to 3s, with a jitter of 50 %.
func WithPause(d time.Duration) Option { return func(o *options) { o.pause = d } }

func newOptions(config Config, set []Option) options {
	o := options{clock: clock.RealClock{}, meter: otel.GetMeterProvider(), pause: firstPause, closeIdle: func() {}}
	for _, option := range set {
		option(&o)
	}
	if o.transport == nil {
		base := newTransport(config)
		o.transport, o.closeIdle = otelhttp.NewTransport(base), base.CloseIdleConnections
	}
	return o
}

// newTransport returns a transport for HTTP/1.1 only: it never retries a POST
// that may have been written.
func newTransport(config Config) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: config.ConnectTimeout}).DialContext,
		TLSHandshakeTimeout:    config.ConnectTimeout,
		ResponseHeaderTimeout:  config.HeaderTimeout,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// kindOf returns the cause of a failed exchange. parent is the context of the
// call, not of the attempt: the timeout of an attempt means that the server was
// slow.
func kindOf(parent context.Context, err error, maybeReceived bool) CallErrorKind {
	var netErr net.Error
	switch {
	case errors.Is(parent.Err(), context.Canceled):
		return KindCanceled
	case !maybeReceived:
		return KindDial
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return KindTimeout
	default:
		return KindIO
	}
}
