package prometheus

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reserved are headers with credentials, and the one that the address determines.
var reserved = []string{"Authorization", "Cookie", "Host", "Proxy-Authorization"}

// namespacePlaceholder stands for the namespace of the release in the value of a header.
const namespacePlaceholder = "{{namespace}}"

// ParseHeaders parses headers of queries, one "name: value" a line. Its error contains no value, which may be a
// credential by mistake.
func ParseHeaders(text string) (http.Header, error) {
	headers := http.Header{}
	var errs []error
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case value == "" || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			errs = append(errs, fmt.Errorf("line %d: write a name and a value, for example X-Scope-OrgID: team-a", i+1))
		case slices.Contains(reserved, name):
			errs = append(errs, fmt.Errorf("header %s is not allowed", name))
		case strings.Contains(strings.ReplaceAll(value, namespacePlaceholder, ""), "{{"):
			errs = append(errs, fmt.Errorf("header %s: the only placeholder is %s", name, namespacePlaceholder))
		default:
			headers.Add(name, value)
		}
	}
	return headers, errors.Join(errs...)
}

// WithHeaders returns a transport that adds headers to requests. {{namespace}} in a value stands for the namespace of
// the context: a proxy or a server with tenants can limit the query to it.
func WithHeaders(headers http.Header, next http.RoundTripper) http.RoundTripper {
	return withHeaders{headers, next}
}

type withHeaders struct {
	headers http.Header
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	namespace := Namespace(r.Context())
	for name, values := range w.headers {
		r.Header.Del(name)
		for _, value := range values {
			r.Header.Add(name, strings.ReplaceAll(value, namespacePlaceholder, namespace))
		}
	}
	return w.next.RoundTrip(r)
}
