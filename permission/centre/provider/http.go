package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// longestAnswer bounds how much of an answer is read.
const longestAnswer = 256 << 10

// httpCaller calls a provider of type http or cmdb.
type httpCaller struct {
	provider    api.Provider
	calls       map[Op]*httpCall
	client      *http.Client
	credentials Credentials
}

// cmdbCalls are what a CMDB is asked unless the provider says otherwise: both
// may be repeated.
func cmdbCalls() *api.HTTPCalls {
	return &api.HTTPCalls{
		Grant: api.HTTPCall{Method: http.MethodPut, Path: "/v1/records/${ip}", Body: map[string]any{
			"ip": "${ip}", "ips": "${ips}", "cluster": "${pod.cluster}", "namespace": "${pod.namespace}", "pod": "${pod.name}",
			"podUID": "${pod.uid}", "node": "${pod.node}", "parameters": "${parameters}"}},
		Revoke: &api.HTTPCall{Method: http.MethodDelete, Path: "/v1/records/${ip}?podUID=${pod.uid}"},
	}
}

func (f Factory) newHTTP(p api.Provider) (Caller, error) {
	endpoint, err := url.Parse(p.Endpoint)
	if err != nil || (endpoint.Scheme != "http" && endpoint.Scheme != "https") || endpoint.Hostname() == "" {
		return nil, fmt.Errorf("endpoint: %q is no URL of http or https", p.Endpoint)
	}
	if endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return nil, fmt.Errorf("endpoint: only scheme, host, port and path; credentials go to credentialsRef")
	}
	port := endpoint.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[endpoint.Scheme]
	}
	if err := f.Egress.CheckHost(endpoint.Hostname(), port); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	calls := p.HTTP
	if calls == nil && p.Type == api.ProviderCMDB {
		calls = cmdbCalls()
	}
	if calls == nil {
		return nil, fmt.Errorf("http: needed for a provider of type http")
	}
	c := &httpCaller{provider: p, calls: map[Op]*httpCall{}, credentials: f.Credentials, client: f.client(endpoint.Host)}
	for op, call := range map[Op]*api.HTTPCall{Grant: &calls.Grant, Poll: calls.Poll, Revoke: calls.Revoke} {
		if call == nil {
			continue
		}
		if c.calls[op], err = compileCall(endpoint, *call); err != nil {
			return nil, fmt.Errorf("http.%s.%w", op, err)
		}
	}
	if calls.Grant.Pending != "" && calls.Poll == nil {
		return nil, fmt.Errorf("http.poll: needed when http.grant.pending is set")
	}
	if p.CanRevoke && calls.Revoke == nil {
		return nil, fmt.Errorf("http.revoke: needed when canRevoke is true; set canRevoke to false when the provider cannot")
	}
	return c, nil
}

// client dials only where the egress allows, and follows a redirect only to
// the same host.
func (f Factory) client(host string) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: f.Egress.Dial, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
				return fmt.Errorf("redirect: %w", ErrNotAllowed)
			}
			return nil
		},
	}
}

// Call makes one call.
func (c *httpCaller) Call(ctx context.Context, call Call) Result {
	compiled := c.calls[call.Op]
	if compiled == nil {
		return failed(ReasonConfiguration, "the provider has no request to "+string(call.Op), false)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout(c.provider))
	defer cancel()
	r, err := compiled.request(ctx, call)
	if err != nil {
		if ctx.Err() == nil {
			return Result{Outcome: Denied, Reason: ReasonParameters, Message: "the request cannot be made of the permission's parameters: " + err.Error()}
		}
		return failed(ReasonTimeout, "no time was left for the call", false)
	}
	secret, err := c.credentials.Get(c.provider.CredentialsRef)
	if err != nil {
		return failed(ReasonConfiguration, err.Error(), false)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	response, err := c.client.Do(r)
	if err != nil {
		return failedCall(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return failedCall(err)
	}
	result := compiled.judge(ctx, call.Op, newAnswer(response.StatusCode, response.Header, content), time.Now())
	if secret != "" {
		result.Message = strings.ReplaceAll(result.Message, secret, "…")
	}
	return result
}

// failedCall tells what went wrong without quoting the error: it may hold the
// URL with its parameters.
func failedCall(err error) Result {
	var network *net.OpError
	dialing := errors.As(err, &network) && network.Op == "dial"
	var timeout net.Error
	switch {
	case errors.Is(err, ErrNotAllowed):
		return failed(ReasonRefusedHost, "the provider's host leads to an address that the centre may not connect to", !dialing)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return failed(ReasonTimeout, "the provider did not answer in time", !dialing)
	case dialing:
		return failed(ReasonUnreachable, "no connection to the provider", false)
	default:
		return failed(ReasonUnreachable, "the connection to the provider broke", true)
	}
}
