// Package auth authenticates requests by their bearer tokens, and asks the API
// server what a user may do.
package auth

import (
	"net/http"
	"strings"
)

// BearerToken returns the request's bearer token; empty for none.
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
