// Package redirect has the rule for redirects of HTTP clients whose calls are writes.
package redirect

import "net/http"

// maxRedirects is the limit of net/http.
const maxRedirects = 10

// KeepMethod is a CheckRedirect that follows no redirect that changes the method: with 301 to 303 net/http would
// send a GET without the body, and its answer would be taken for that of the write.
func KeepMethod(next *http.Request, via []*http.Request) error {
	if next.Method != via[0].Method || len(via) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// KeepHost is KeepMethod for requests with a token: it also follows no redirect to another host, or from https to
// another scheme.
func KeepHost(next *http.Request, via []*http.Request) error {
	first := via[0].URL
	if next.URL.Hostname() != first.Hostname() || first.Scheme == "https" && next.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	return KeepMethod(next, via)
}
