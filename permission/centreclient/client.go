package centreclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/breakwater-dev/breakwater/permission/api"
)

const (
	// timeout bounds a call that asks nothing to be waited for.
	timeout = 10 * time.Second
	// reportTimeout bounds a page of a report: 5000 pods.
	reportTimeout = time.Minute
	// maxAnswer bounds an answer: 500 applications of some KiB each.
	maxResponse = 8 << 20
	// page is how many applications are asked for at a time.
	pageSize = 500
)

// Options are what a Client works with.
type Options struct {
	// URL returns where the centre is; it may change.
	URL func() string
	// TokenFile holds the token by which the centre knows us. It is read for
	// each call: the kubelet replaces it. Empty: none is sent.
	TokenFile string
	HTTP      *http.Client
	// Limit, if set, is waited for before each call.
	Limit *rate.Limiter
}

// Client speaks to the centre. An error is a *StatusError when it answered.
type Client struct{ o Options }

// New returns a Client.
func New(o Options) *Client {
	if o.HTTP == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy, t.MaxIdleConnsPerHost = nil, 64
		o.HTTP = &http.Client{Transport: t}
	}
	return &Client{o}
}

// Set returns a permission set.
func (c *Client) PermissionSet(ctx context.Context, name string) (api.PermissionSet, error) {
	return do[api.PermissionSet](ctx, c, timeout, http.MethodGet, "/v1/permissionsets/"+url.PathEscape(name), nil)
}

// Apply asks for a set for a pod.
func (c *Client) Apply(ctx context.Context, r api.ApplicationRequest) (api.Application, error) {
	return do[api.Application](ctx, c, timeout, http.MethodPost, "/v1/applications", r)
}

// Wait returns the application when its version is above the one given, or
// after the time.
func (c *Client) Wait(ctx context.Context, id string, version int64, wait time.Duration) (api.Application, error) {
	path := fmt.Sprintf("/v1/applications/%s?wait=%s&version=%d", url.PathEscape(id), wait, version)
	return do[api.Application](ctx, c, wait+timeout, http.MethodGet, path, nil)
}

// List returns all applications that the query selects.
func (c *Client) List(ctx context.Context, query url.Values) ([]api.Application, error) {
	var all []api.Application
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for key, values := range query {
		q[key] = values
	}
	for {
		list, err := do[api.ApplicationList](ctx, c, timeout, http.MethodGet, "/v1/applications?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		if all = append(all, list.Items...); list.Continue == "" {
			return all, nil
		}
		q.Set("continue", list.Continue)
	}
}

// OfPod returns the applications of a pod.
func (c *Client) ListByPod(ctx context.Context, cluster, uid string) ([]api.Application, error) {
	return c.List(ctx, url.Values{"cluster": {cluster}, "podUID": {uid}})
}

// Revoke has the applications of a pod revoked, and returns them.
func (c *Client) Revoke(ctx context.Context, r api.RevokeRequest) ([]api.Application, error) {
	list, err := do[api.ApplicationList](ctx, c, timeout, http.MethodPost, "/v1/applications/revoke", r)
	return list.Items, err
}

// Reset lets a Denied or Failed application be asked for again at once.
func (c *Client) Reset(ctx context.Context, id string) error {
	_, err := do[json.RawMessage](ctx, c, timeout, http.MethodPost, "/v1/applications/"+url.PathEscape(id)+"/reset", nil)
	return err
}

// Report tells which pods of a cluster live.
func (c *Client) ReportPods(ctx context.Context, cluster string, r api.PodReport) (api.PodReportResult, error) {
	return do[api.PodReportResult](ctx, c, reportTimeout, http.MethodPost, "/v1/clusters/"+url.PathEscape(cluster)+"/pods/reconcile", r)
}

func do[T any](ctx context.Context, c *Client, timeout time.Duration, method, path string, body any) (T, error) {
	var out T
	if c.o.Limit != nil {
		if err := c.o.Limit.Wait(ctx); err != nil {
			return out, fmt.Errorf("wait for the limit of calls to the permission centre: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return out, err
	}
	res, err := c.o.HTTP.Do(req)
	if err != nil {
		return out, fmt.Errorf("ask the permission centre: %w", withoutURL(err))
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return out, fmt.Errorf("read the permission centre's answer: %w", withoutURL(err))
	}
	if res.StatusCode >= http.StatusBadRequest {
		return out, statusError(res, raw)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("decode the permission centre's answer: %w", err)
	}
	return out, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.o.URL(), "/")+path, reader)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.o.TokenFile != "" {
		token, err := os.ReadFile(c.o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return req, nil
}

func statusError(res *http.Response, raw []byte) error {
	e := &StatusError{Status: res.StatusCode}
	_ = json.Unmarshal(raw, &e.Detail) // who answered may be a proxy on the way
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// reason leaves out the URL, which the errors of net/http begin with: messages
// end on pods, where their users read them.
func withoutURL(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}
