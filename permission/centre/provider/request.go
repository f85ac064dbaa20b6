package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/google/cel-go/cel"
	"golang.org/x/net/http/httpguts"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// httpCall is a compiled api.HTTPCall.
type httpCall struct {
	method   string
	path     *template
	headers  map[string]*template
	body     body
	granted  *expression
	pending  *expression
	denied   *expression
	message  *expression
	keep     map[string]*expression
	endpoint *url.URL
}

// compileCall compiles a call; errors begin with the field.
func compileCall(endpoint *url.URL, c api.HTTPCall) (*httpCall, error) {
	call := &httpCall{method: c.Method, endpoint: endpoint, headers: map[string]*template{}, keep: map[string]*expression{}}
	if call.method == "" {
		call.method = http.MethodPost
	}
	if !strings.Contains(" GET POST PUT PATCH DELETE ", " "+call.method+" ") {
		return nil, fmt.Errorf("method: %q is not one of GET, POST, PUT, PATCH, DELETE", c.Method)
	}
	if c.Path != "" && !strings.HasPrefix(c.Path, "/") && !strings.HasPrefix(c.Path, "?") {
		return nil, fmt.Errorf("path: %q must begin with / or ?", c.Path)
	}
	var err error
	if call.path, err = parseTemplate(requestEnv, c.Path); err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	for name, text := range c.Headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("headers.%q: is not a name of an HTTP header", name)
		}
		if strings.EqualFold(name, "Authorization") || strings.EqualFold(name, "Host") {
			return nil, fmt.Errorf("headers.%s: is set by the centre; use credentialsRef for credentials", name)
		}
		if call.headers[name], err = parseTemplate(requestEnv, text); err != nil {
			return nil, fmt.Errorf("headers.%s: %w", name, err)
		}
	}
	if c.Body != nil {
		if call.body, err = parseBody(requestEnv, c.Body); err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
	}
	for _, e := range []struct {
		to   **expression
		name string
		text string
		kind *cel.Type
	}{
		{&call.granted, "granted", c.Granted, cel.BoolType}, {&call.pending, "pending", c.Pending, cel.BoolType},
		{&call.denied, "denied", c.Denied, cel.BoolType}, {&call.message, "message", c.Message, cel.StringType},
	} {
		if e.text == "" {
			continue
		}
		if *e.to, err = compile(responseEnv, e.text, e.kind); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	for name, text := range c.Keep {
		if call.keep[name], err = compile(responseEnv, text); err != nil {
			return nil, fmt.Errorf("keep.%s: %w", name, err)
		}
	}
	return call, nil
}

// request builds the HTTP request of a call.
func (c *httpCall) request(ctx context.Context, call Call) (*http.Request, error) {
	vars := variables(call)
	path, err := c.path.text(ctx, vars, escape)
	if err != nil {
		return nil, err
	}
	target := strings.TrimSuffix(c.endpoint.String(), "/") + path
	var content io.Reader
	if c.body != nil {
		value, err := c.body(ctx, vars)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, c.method, target, content)
	if err != nil {
		return nil, err
	}
	// A path must not change the host.
	if r.URL.Host != c.endpoint.Host || r.URL.User != nil {
		return nil, fmt.Errorf("path changes the host of the endpoint")
	}
	// A value and the literal text beside it can form a dot segment (. or ..), which
	// servers and proxies resolve.
	for segment := range strings.SplitSeq(r.URL.EscapedPath(), "/") {
		if plain, err := url.PathUnescape(segment); err != nil || plain == "." || plain == ".." {
			return nil, fmt.Errorf("path has the dot segment %q", segment)
		}
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Idempotency-Key", call.Key)
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, t := range c.headers {
		value, err := t.text(ctx, vars, func(s string) string { return s })
		if err != nil {
			return nil, err
		}
		r.Header.Set(name, strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, value))
	}
	return r, nil
}

// escape escapes a value as one path segment or one query value.
func escape(s string) string {
	if s == "." || s == ".." {
		// Some servers resolve dot segments even if they are escaped.
		return "_"
	}
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// variables returns the CEL variables of a request.
func variables(call Call) map[string]any {
	ip := ""
	if len(call.IPs) > 0 {
		ip = call.IPs[0]
	}
	parameters := call.Parameters
	if parameters == nil {
		parameters = map[string]string{}
	}
	return map[string]any{
		"ip": ip, "ips": call.IPs, "parameters": parameters, "key": call.Key, "kept": numbers(call.Kept),
		"pod": map[string]string{
			"cluster": call.Pod.Cluster, "namespace": call.Pod.Namespace, "name": call.Pod.Pod, "uid": call.Pod.PodUID,
			"node": call.Pod.Node, "serviceAccount": call.Pod.ServiceAccount,
		},
	}
}
