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

	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/redirect"
)

const (
	// timeout bounds a call that is not a long poll.
	timeout = 10 * time.Second
	// reportTimeout bounds the report of one page of 5000 pods.
	reportTimeout = time.Minute
	// maxResponse is the size limit of a response in bytes: 100 applications of up to 80 KiB, which
	// 50 permissions with long messages have.
	maxResponse = 8 << 20
	// pageSize is how many applications one list call requests.
	pageSize = 100
)

// Options configure a Client.
type Options struct {
	// URL returns the base URL of the centre. It is called for each request.
	URL func() string
	// TokenFile contains the bearer token. It is read for each call, because the
	// kubelet rotates it. If empty, no token is sent.
	TokenFile string
	// Trust, if set, has the certificates that the client trusts in addition to those of
	// the system.
	Trust *servingcert.Bundle
	// HTTP, if set, replaces the HTTP client.
	HTTP *http.Client
	// ClusterUID is the UID of namespace kube-system. If set, it is sent with requests of
	// permission sets.
	ClusterUID string
	// Limit, if set, limits the rate of calls.
	Limit *rate.Limiter
}

// Client calls the permission centre. Its errors are a *StatusError if the centre
// answered.
type Client struct{ o Options }

// New returns a Client.
func New(o Options) *Client {
	if o.HTTP == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.Proxy, t.MaxIdleConnsPerHost = nil, 64
		if o.Trust != nil {
			o.Trust.Trust(t)
		}
		o.HTTP = &http.Client{Transport: t, CheckRedirect: redirect.KeepHost}
	}
	return &Client{o}
}

// PermissionSet returns the permission set of a name.
func (c *Client) PermissionSet(ctx context.Context, name string) (api.PermissionSet, error) {
	return do[api.PermissionSet](ctx, c, timeout, http.MethodGet, "/v1/permissionsets/"+url.PathEscape(name), nil)
}

// Apply requests a permission set for a pod.
func (c *Client) Apply(ctx context.Context, r api.ApplicationRequest) (api.Application, error) {
	path := "/v1/applications"
	if c.o.ClusterUID != "" {
		path += "?clusterUID=" + url.QueryEscape(c.o.ClusterUID)
	}
	return do[api.Application](ctx, c, timeout, http.MethodPost, path, r)
}

// Wait returns the application when its version is above version, or after wait.
func (c *Client) Wait(ctx context.Context, id string, version int64, wait time.Duration) (api.Application, error) {
	path := fmt.Sprintf("/v1/applications/%s?wait=%s&version=%d", url.PathEscape(id), wait, version)
	return do[api.Application](ctx, c, wait+timeout, http.MethodGet, path, nil)
}

// List returns all applications that match the query.
func (c *Client) List(ctx context.Context, query url.Values) ([]api.Application, error) {
	var all []api.Application
	err := c.Each(ctx, query, func(app api.Application) { all = append(all, app) })
	return all, err
}

// Each calls visit for each application that matches the query, page by page.
func (c *Client) Each(ctx context.Context, query url.Values, visit func(api.Application)) error {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for key, values := range query {
		q[key] = values
	}
	for {
		list, err := do[api.ApplicationList](ctx, c, timeout, http.MethodGet, "/v1/applications?"+q.Encode(), nil)
		if err != nil {
			return err
		}
		for _, app := range list.Items {
			visit(app)
		}
		if list.Continue == "" {
			return nil
		}
		q.Set("continue", list.Continue)
	}
}

// ListByPod returns the applications of a pod.
func (c *Client) ListByPod(ctx context.Context, cluster, uid string) ([]api.Application, error) {
	return c.List(ctx, url.Values{"cluster": {cluster}, "podUID": {uid}})
}

// Revoke starts to revoke the applications of a pod.
func (c *Client) Revoke(ctx context.Context, r api.RevokeRequest) (api.RevokeResult, error) {
	return do[api.RevokeResult](ctx, c, timeout, http.MethodPost, "/v1/applications/revoke", r)
}

// Reset begins a new attempt of a Denied or Failed application.
func (c *Client) Reset(ctx context.Context, id string) error {
	_, err := do[json.RawMessage](ctx, c, timeout, http.MethodPost, "/v1/applications/"+url.PathEscape(id)+"/reset", nil)
	return err
}

// ReportPods reports one page of the pods that exist in a cluster.
func (c *Client) ReportPods(ctx context.Context, cluster string, r api.PodReport) (api.PodReportResult, error) {
	return do[api.PodReportResult](ctx, c, reportTimeout, http.MethodPost, "/v1/clusters/"+url.PathEscape(cluster)+"/pods/reconcile", r)
}

func do[T any](ctx context.Context, c *Client, timeout time.Duration, method, path string, body any) (T, error) {
	var out T
	if c.o.Limit != nil {
		if err := c.o.Limit.Wait(ctx); err != nil {
			return out, fmt.Errorf("wait for the rate limit of the permission centre: %w", err)
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
		return out, fmt.Errorf("call the permission centre: %w", withoutURL(err))
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	if err != nil {
		return out, fmt.Errorf("read the response of the permission centre: %w", withoutURL(err))
	}
	if len(raw) > maxResponse {
		return out, fmt.Errorf("the response of the permission centre has more than %d MiB", maxResponse>>20)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return out, statusError(res, raw)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		// encoding/json quotes numbers of any length.
		return out, fmt.Errorf("decode the response of the permission centre: %s", text.Truncate(err.Error(), maxMessage/2))
	}
	return out, nil
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.o.URL(), "/")+path, reader)
	if err != nil {
		return nil, fmt.Errorf("create the request: %w", err)
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
	_ = json.Unmarshal(raw, &e.Detail) // a proxy may answer without JSON
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	}
	return e
}

// withoutURL removes the URL from an error of net/http, because error messages
// appear in the status of pods, where their users read them.
func withoutURL(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}
