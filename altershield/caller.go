package altershield

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxAnswer is the maximum size of an answer, in bytes.
	maxAnswer = 1 << 20
	// maxResultMsg is the maximum length of ResultError.Msg, in bytes.
	maxResultMsg = 1024
	// Pauses between attempts double from firstPause to longestPause, with jitter.
	firstPause   = 200 * time.Millisecond
	longestPause = 3 * time.Second
)

// caller makes a call with rate limit, circuit breaker, retries, deadline and
// metrics.
type caller struct {
	url      string
	attempt  time.Duration
	deadline time.Duration
	sign     func(header http.Header, body []byte)
	http     *http.Client
	// closeIdle closes idle connections; otelhttp's transport does not forward the
	// call.
	closeIdle func()
	limiter   *limiter
	clock     clock.PassiveClock
	pause     time.Duration
	metrics   *instruments
	breaker   *breaker
}

func newCaller(config Config, options []Option) *caller {
	o := newOptions(config, options)
	c := &caller{
		url:      strings.TrimRight(config.BaseURL, "/") + actionPath,
		attempt:  config.AttemptTimeout,
		deadline: config.TotalDeadline,
		http: &http.Client{
			Transport: o.transport,
			// A followed redirect would turn the POST into a GET.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		closeIdle: o.closeIdle,
		limiter:   &limiter{Limiter: rate.NewLimiter(rate.Limit(config.QPS), config.Burst)},
		clock:     o.clock,
		pause:     o.pause,
		metrics:   newInstruments(o.meter),
	}
	c.breaker = newBreaker(config.BreakerFailures, config.BreakerPause, c.metrics)
	c.sign = func(header http.Header, body []byte) {
		SignHeader(header, config.HeaderPrefix, config.Platform, body, config.Token, c.clock.Now())
	}
	return c
}

// call sends the request until it is answered, a retry is useless or harmful, or
// the deadline passes. It decodes the domain of a success into domain, unless
// that is nil.
func (c *caller) call(ctx context.Context, action string, r repeat, request, domain any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("altershield %s: %w", action, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	ctx, span := startSpan(ctx, action)
	var last error
	defer func() { endSpan(span, last) }()
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := c.once(ctx, action, body, domain)
		if (IsBreakerOpen(err) || IsThrottled(err)) && last != nil {
			return struct{}{}, backoff.Permanent(err) // call returns last, which is more specific
		}
		last = err
		if last != nil && !retryable(last, r) {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(c.backOff()), backoff.WithMaxElapsedTime(c.deadline))
	if err != nil {
		// The last error of an attempt is more specific than the deadline.
		return last
	}
	return nil
}

func (c *caller) backOff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = c.pause
	b.RandomizationFactor = 0.5
	b.Multiplier = 2
	b.MaxInterval = longestPause
	return b
}

// once makes one attempt and records its metrics.
func (c *caller) once(ctx context.Context, action string, body []byte, domain any) error {
	if err := c.limiter.wait(ctx); err != nil {
		err = throttled(ctx, action, err)
		c.metrics.count(ctx, action, err)
		return err
	}
	begin := c.clock.Now()
	err := c.breaker.do(action, func() error { return c.send(ctx, action, body, domain) })
	c.metrics.count(ctx, action, err)
	if !IsBreakerOpen(err) { // a stopped attempt would lower the quantiles during an outage
		c.metrics.time(ctx, action, err, c.clock.Since(begin))
	}
	return err
}

// send makes one exchange with the server.
func (c *caller) send(parent context.Context, action string, body []byte, domain any) error {
	ctx, cancel := context.WithTimeout(parent, c.attempt)
	defer cancel()
	// Between GetConn and GotConn nothing can have been written. In every other
	// case, or with a transport without these hooks, the server may have received
	// the request.
	var dialing, connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { dialing.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	fail := func(err error) error {
		maybeReceived := connected.Load() || !dialing.Load()
		return &CallError{Action: action, Kind: kindOf(parent, err, maybeReceived), MaybeReceived: maybeReceived, Err: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+action, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("altershield %s: %w", action, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	c.sign(request.Header, body)
	response, err := c.http.Do(request)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = response.Body.Close() }() // nothing depends on the error
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if response.StatusCode != http.StatusOK {
		return &CallError{
			Action: action, Kind: KindStatus, Status: response.StatusCode, MaybeReceived: true,
			Err: fmt.Errorf("answer %q", text.Truncate(string(answer), 128)),
		}
	}
	if err != nil {
		return fail(err)
	}
	return Decode(action, answer, domain)
}

// Decode parses the envelope of an answer, and decodes the domain of a success into domain,
// a pointer, unless that is nil. The error is a *ResultError or a *CallError; domain is unchanged then.
func Decode(action string, answer []byte, domain any) error {
	malformed := func(err error) error {
		return &CallError{Action: action, Kind: KindMalformed, Status: http.StatusOK, MaybeReceived: true, Err: err}
	}
	if len(answer) > maxAnswer {
		return malformed(fmt.Errorf("answer exceeds %d bytes", maxAnswer))
	}
	var e envelope
	if err := json.Unmarshal(answer, &e); err != nil {
		return malformed(fmt.Errorf("parse answer %q: %w", text.Truncate(string(answer), 128), err))
	}
	if e.Success == nil {
		return malformed(fmt.Errorf("answer %q has no field success", text.Truncate(string(answer), 128)))
	}
	code, msg := "", ""
	if e.ResultCode != nil {
		code = text.Truncate(*e.ResultCode, maxWord)
	}
	if e.Msg != nil {
		msg = text.Truncate(*e.Msg, maxResultMsg)
	}
	if !*e.Success || (code != "" && code != CodeOK) {
		return &ResultError{Action: action, Code: code, Msg: msg}
	}
	if domain == nil || len(e.Domain) == 0 {
		return nil
	}
	// A malformed domain leaves no values for the next attempt.
	decoded := reflect.New(reflect.TypeOf(domain).Elem())
	if err := json.Unmarshal(e.Domain, decoded.Interface()); err != nil {
		return malformed(fmt.Errorf("parse domain %q: %w", text.Truncate(string(e.Domain), 128), err))
	}
	reflect.ValueOf(domain).Elem().Set(decoded.Elem())
	return nil
}
