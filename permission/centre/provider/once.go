package provider

import (
	"io"
	"net/http"
	"strings"
)

// sendOnce sends each request at most once. http.Transport repeats a request whose connection was closed,
// without a slot of the rate limit, if its method is safe or if it has an idempotency key.
type sendOnce struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s sendOnce) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := r.Header[name]; ok {
			delete(r.Header, name)
			r.Header[strings.ToLower(name)] = values // http.Transport looks for the canonical name only
		}
	}
	if r.Method == http.MethodGet {
		if r.Body == nil {
			r.Body = io.NopCloser(strings.NewReader("")) // unknown to be empty; it does not change what is sent
		}
		r.GetBody = nil
	}
	return s.next.RoundTrip(r)
}
