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

// Option changes what New makes.
type Option func(*options)

type options struct {
	clock     clock.PassiveClock
	meter     metric.MeterProvider
	transport http.RoundTripper
	pause     time.Duration
	closeIdle func()
}

// WithClock gives the time of timestamps; default the machine's.
func WithClock(c clock.PassiveClock) Option { return func(o *options) { o.clock = c } }

// WithMeterProvider gives where metrics go; default the process's provider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meter = p } }

// WithTransport gives the transport; default one made from Config's timeouts,
// which sends traceparent.
func WithTransport(t http.RoundTripper) Option { return func(o *options) { o.transport = t } }

// WithPause gives the first pause between attempts; default 200ms, doubling to
// 3s, jittered by half.
func WithPause(d time.Duration) Option { return func(o *options) { o.pause = d } }

func settle(config Config, given []Option) options {
	o := options{clock: clock.RealClock{}, meter: otel.GetMeterProvider(), pause: firstPause, closeIdle: func() {}}
	for _, option := range given {
		option(&o)
	}
	if o.transport == nil {
		base := newTransport(config)
		o.transport, o.closeIdle = otelhttp.NewTransport(base), base.CloseIdleConnections
	}
	return o
}

// newTransport speaks HTTP/1.1 only: over it, a POST that may have been written
// is never sent again behind our back.
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

// kindOf names what broke an exchange. parent is the caller's context: its own
// timeout is the attempt's and means that the server was slow.
func kindOf(parent context.Context, err error, sent bool) TransportKind {
	var netErr net.Error
	switch {
	case errors.Is(parent.Err(), context.Canceled):
		return KindCanceled
	case !sent:
		return KindDial
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return KindTimeout
	default:
		return KindIO
	}
}
