package controlplane

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Request is one kind of request to the API server.
type Request struct {
	// Component sent it.
	Component string
	// Verb is the verb that the API server authorizes: get, list, watch, create, ...
	Verb string
	// Resource has the subresource behind a slash.
	Resource string
	// Namespace is empty for requests across namespaces.
	Namespace string
}

// Write reports whether the request changes an object.
func (r Request) Write() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// String implements fmt.Stringer.
func (r Request) String() string { return r.Component + " " + r.Verb + " " + r.Resource }

// Sent are the requests of one kind.
type Sent struct {
	// Requests counts the requests that were answered without an error, Rejected those with one.
	Requests, Rejected int
	// Bytes is the total size of the request bodies.
	Bytes int64
}

// Requests counts requests to the API server.
type Requests struct {
	mu   sync.Mutex
	sent map[Request]Sent
}

// Reset forgets the requests so far.
func (r *Requests) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

// Sent returns the requests since the last Reset.
func (r *Requests) Sent() map[Request]Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[Request]Sent, len(r.sent))
	for k, v := range r.sent {
		out[k] = v
	}
	return out
}

func (r *Requests) add(kind Request, body int64, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		r.sent = map[Request]Sent{}
	}
	s := r.sent[kind]
	if failed {
		s.Rejected++
	} else {
		s.Requests++
	}
	s.Bytes += max(0, body)
	r.sent[kind] = s
}

// count counts the requests of a component that are sent with config.
func (r *Requests) count(config *rest.Config, component string) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			kind, known := parse(request)
			kind.Component = component
			response, err := next.RoundTrip(request)
			if known {
				r.add(kind, request.ContentLength, err != nil || response.StatusCode >= http.StatusBadRequest)
			}
			return response, err
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// parse returns the kind of a request for a resource.
func parse(r *http.Request) (Request, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return Request{}, false // discovery, health
	}
	out := Request{Verb: strings.ToLower(r.Method)}
	if len(parts) > 2 && parts[0] == "namespaces" {
		out.Namespace, parts = parts[1], parts[2:]
	}
	out.Resource = parts[0]
	named := len(parts) > 1
	if len(parts) > 2 {
		out.Resource += "/" + parts[2]
	}
	switch {
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		out.Verb = "watch"
	case r.Method == http.MethodGet && !named:
		out.Verb = "list"
	case r.Method == http.MethodPost:
		out.Verb = "create"
	case r.Method == http.MethodPut:
		out.Verb = "update"
	}
	return out, true
}

// Table formats the numbers of requests, divided by the number of units, the largest first.
func Table(sent map[Request]Sent, units int) string {
	kinds := make([]Request, 0, len(sent))
	for k := range sent {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b Request) int {
		if n := sent[b].Requests - sent[a].Requests; n != 0 {
			return n
		}
		return strings.Compare(a.String()+a.Namespace, b.String()+b.Namespace)
	})
	var out strings.Builder
	for _, k := range kinds {
		s, n := sent[k], float64(units)
		_, _ = fmt.Fprintf(io.Writer(&out), "%-40s %7.2f  rejected %5.2f  %6.0f bytes\n", k, float64(s.Requests)/n, float64(s.Rejected)/n, float64(s.Bytes)/n)
	}
	return out.String()
}
