// Package prometheus reads raw samples from Prometheus. The time of a query, the bytes of its answer and
// those of all answers that are read at a time are limited.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// DefaultTimeout is the default time limit of one query.
	DefaultTimeout = 15 * time.Second
	// Step is the resolution of expressions that are not plain selectors.
	Step = 15 * time.Second
)

// Client reads from one Prometheus.
type Client struct {
	api     v1.API
	timeout time.Duration
	budget  *budget
}

// New returns a client of the Prometheus at address. It follows no redirect. The transport may be nil.
func New(address string, timeout time.Duration, transport http.RoundTripper) (*Client, error) {
	if transport == nil {
		transport = api.DefaultRoundTripper
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	if _, err := ParseAddress(address); err != nil {
		return nil, err
	}
	c, err := api.NewClient(api.Config{Address: address, RoundTripper: limited{transport}})
	if err != nil {
		return nil, err
	}
	return &Client{api: v1.NewAPI(complete{c}), timeout: timeout, budget: newBudget(MaxBytes, sharedBytes)}, nil
}

// ParseAddress parses the address of a Prometheus. Its error contains no part of it, which may be a password. An @ outside of
// the user is an error: it follows a password with an unescaped slash, question mark or hash.
func ParseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Count(address, "@") > 1 || u.User == nil && strings.Contains(address, "@") {
		return nil, errors.New("not an http or https URL, for example http://prometheus.monitoring:9090")
	}
	return u, nil
}

// limited limits the size of answers, and denies redirects: the next transport may add a token, and
// the target may be another host or use http.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		_ = resp.Body.Close()
		// The rest of the URL may contain a secret.
		return nil, fmt.Errorf("the redirect to %s://%s is not followed: use the address of Prometheus itself", to.Scheme, to.Host)
	}
	if s, ok := r.Context().Value(shareKey{}).(*share); ok {
		resp.Body = &limitedBody{ReadCloser: resp.Body, ctx: r.Context(), share: s}
	}
	return resp, nil
}

// complete denies answers that VictoriaMetrics marks as partial: a storage node was unreachable.
type complete struct{ api.Client }

// partial is the mark. JSON escapes the quotes in the value of a label.
var partial = regexp.MustCompile(`"isPartial"\s*:\s*true`)

// Do implements api.Client.
func (c complete) Do(ctx context.Context, r *http.Request) (*http.Response, []byte, error) {
	resp, body, err := c.Client.Do(ctx, r)
	if err == nil && partial.Match(body) {
		err = errors.New("the answer is incomplete: isPartial is true")
	}
	return resp, body, err
}

// Range reads the samples of an expression after from, until to: the raw samples of a
// plain selector, or the value of any other expression at each step.
func (c *Client) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	length := strconv.FormatInt(int64(to.Sub(from)/time.Millisecond), 10) + "ms"
	query := "(" + expression + ")[" + length + ":" + model.Duration(step).String() + "]"
	if _, plain := ParseSelector(expression); plain {
		query = expression + "[" + length + "]"
	}
	return c.query(ctx, query, to)
}

func (c *Client) query(ctx context.Context, query string, at time.Time) ([]samples.Series, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ctx, s := c.budget.begin(ctx)
	defer s.release()
	value, warnings, err := c.api.Query(ctx, query, at, v1.WithTimeout(c.timeout))
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", shorten(query), err)
	}
	for _, w := range warnings {
		// Annotations of PromQL concern the query. Any other warning means that data is missing.
		if !strings.HasPrefix(w, "PromQL ") {
			return nil, fmt.Errorf("query %s: the answer is incomplete: %s", shorten(query), w)
		}
	}
	m, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("query %s: the result is a %s, want a matrix", shorten(query), value.Type())
	}
	out := make([]samples.Series, 0, len(m))
	for _, stream := range m {
		points := make([]samples.Point, 0, len(stream.Values))
		for _, p := range stream.Values {
			points = append(points, samples.Point{T: float64(p.Timestamp) / 1000, V: float64(p.Value)})
		}
		out = append(out, samples.Series{Labels: labels(stream.Metric), Points: points})
	}
	return out, nil
}

func labels(m model.Metric) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[string(k)] = string(v)
	}
	return out
}

func shorten(query string) string {
	if len(query) > 300 {
		return strings.ToValidUTF8(query[:300], "") + "…"
	}
	return query
}
