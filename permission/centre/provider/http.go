package provider

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/breakwater-dev/breakwater/internal/httptransport"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/redirect"
)

// maxResponseSize is the limit of the body of a response, in bytes. One byte more is read.
const maxResponseSize = 256 << 10

// httpClient calls a provider of type http or cmdb.
type httpClient struct {
	provider    api.Provider
	calls       map[Op]*httpCall
	http        *http.Client
	credentials Credentials
}

// cmdbCalls are the default calls of a CMDB provider. Both are idempotent.
func cmdbCalls() *api.HTTPCalls {
	return &api.HTTPCalls{
		Grant: api.HTTPCall{Method: http.MethodPut, Path: "/v1/records/${ip}", Body: map[string]any{
			"ip": "${ip}", "ips": "${ips}", "cluster": "${pod.cluster}", "namespace": "${pod.namespace}", "pod": "${pod.name}",
			"podUID": "${pod.uid}", "node": "${pod.node}", "parameters": "${parameters}"}},
		Revoke: &api.HTTPCall{Method: http.MethodDelete, Path: "/v1/records/${ip}?podUID=${pod.uid}"},
	}
}

func (f Factory) newHTTP(p api.Provider) (Client, error) {
	endpoint, err := url.Parse(p.Endpoint)
	if err != nil || (endpoint.Scheme != "http" && endpoint.Scheme != "https") || endpoint.Hostname() == "" {
		return nil, fmt.Errorf("endpoint: %q is not an http or https URL", p.Endpoint)
	}
	if endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return nil, fmt.Errorf("endpoint: must have only scheme, host, port and path; put credentials in credentialsRef")
	}
	port := endpoint.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[endpoint.Scheme]
	}
	if err := f.Egress.CheckHost(endpoint.Hostname(), port); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	calls := callsOf(p)
	if calls == nil {
		return nil, fmt.Errorf("http: required for a provider of type http")
	}
	authorities, err := authoritiesOf(calls, endpoint.Scheme)
	if err != nil {
		return nil, err
	}
	c := &httpClient{provider: p, calls: map[Op]*httpCall{}, credentials: f.Credentials, http: f.client(endpoint.Host, authorities)}
	for op, call := range map[Op]*api.HTTPCall{Grant: &calls.Grant, Poll: calls.Poll, Revoke: calls.Revoke} {
		if call == nil {
			continue
		}
		if c.calls[op], err = compileCall(endpoint, *call); err != nil {
			return nil, fmt.Errorf("http.%s.%w", op, err)
		}
	}
	if calls.Grant.Pending != "" && calls.Poll == nil {
		return nil, fmt.Errorf("http.poll: required if http.grant.pending is set")
	}
	if p.CanRevoke && calls.Revoke == nil {
		return nil, fmt.Errorf("http.revoke: required if canRevoke is true; set canRevoke to false if the provider cannot revoke")
	}
	return c, nil
}

// callsOf returns the calls of a provider; nil if it has none. A CMDB without calls has the default ones.
func callsOf(p api.Provider) *api.HTTPCalls {
	calls := cmp.Or(p.HTTP, &api.HTTPCalls{})
	if p.Type != api.ProviderCMDB || !reflect.DeepEqual(*calls, api.HTTPCalls{CA: calls.CA}) {
		return p.HTTP
	}
	defaults := cmdbCalls()
	defaults.CA = calls.CA
	return defaults
}

// authoritiesOf returns the authorities of http.ca; nil means those of the image.
func authoritiesOf(calls *api.HTTPCalls, scheme string) (*x509.CertPool, error) {
	if calls.CA == "" {
		return nil, nil
	}
	if scheme != "https" {
		return nil, fmt.Errorf("http.ca: no certificate is verified with an %s endpoint; leave http.ca out, or use https", scheme)
	}
	return authorities("http.ca", calls.CA)
}

// client returns a client that dials only allowed addresses and follows
// redirects only to the same host and with the same method.
func (f Factory) client(host string, authorities *x509.CertPool) *http.Client {
	transport := httptransport.New()
	// A proxy would dial in place of Egress.
	transport.Proxy, transport.DialContext = nil, f.Egress.Dial
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	transport.MaxIdleConnsPerHost = 64
	return &http.Client{
		Transport: sendOnce{transport},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
				return fmt.Errorf("redirect to another host or scheme: %w", ErrNotAllowed)
			}
			return redirect.KeepMethod(r, via)
		},
	}
}

// Call implements Client.
func (c *httpClient) Call(ctx context.Context, call Call) Result {
	compiled := c.calls[call.Op]
	if compiled == nil {
		return failed(ReasonProviderMisconfigured, "the provider has no request http."+string(call.Op), false)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout(c.provider))
	defer cancel()
	r, err := compiled.request(ctx, call)
	if err != nil {
		if ctx.Err() == nil {
			return Result{Outcome: Denied, Reason: ReasonInvalidParameters, Message: "the request cannot be built from the permission's parameters: " + err.Error()}
		}
		return failed(ReasonProviderTimeout, "the timeout expired before the call", false)
	}
	secret, err := c.credentials.Get(c.provider.CredentialsRef)
	if err != nil {
		return failed(ReasonProviderMisconfigured, err.Error(), false)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }}
	response, err := c.http.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return failedCall(err, sent.Load())
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponseSize+1))
	if err != nil {
		return failedCall(err, true)
	}
	result := compiled.interpret(ctx, call.Op, newResponse(response.StatusCode, response.Header, content, secret), time.Now())
	if len(content) > maxResponseSize && compiled.readsResponse() && (result.Outcome == Done || result.Outcome == Pending) {
		// The rest may deny the request, or have a value to keep.
		return failed(ReasonProviderError, "the response has more than 256 KiB", true)
	}
	return result
}

// SameRequest reports whether two calls have the same request, or the same parameters if the provider has no request for
// them. A request that cannot be built is different.
func (c *httpClient) SameRequest(ctx context.Context, call, other Call) bool {
	compiled := c.calls[call.Op]
	if compiled == nil {
		return maps.Equal(call.Parameters, other.Parameters)
	}
	var texts [2]bytes.Buffer
	for i, call := range []Call{call, other} {
		r, err := compiled.request(ctx, call)
		if err != nil || r.Write(&texts[i]) != nil {
			return false
		}
	}
	return bytes.Equal(texts[0].Bytes(), texts[1].Bytes())
}

// failedCall classifies an error without quoting it: the error may contain the
// URL with its parameters. sent: there was a connection, after the TLS handshake.
func failedCall(err error, sent bool) Result {
	var timeout net.Error
	switch {
	case errors.Is(err, ErrNotAllowed):
		return failed(ReasonHostNotAllowed, "the provider's host resolves or redirects to an address that the centre must not connect to", sent)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return failed(ReasonProviderMisconfigured, "the certificate of the provider is not trusted: set http.ca, and an endpoint with a name of the certificate", sent)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return failed(ReasonProviderTimeout, "the provider did not answer in time", sent)
	case !sent:
		return failed(ReasonProviderUnreachable, "cannot connect to the provider", false)
	default:
		return failed(ReasonProviderUnreachable, "the connection to the provider was lost", true)
	}
}
