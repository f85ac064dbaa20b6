package auth

import (
	"net/http"
	"testing"
)

func TestWhichHeadersHaveABearerToken(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer secret":   "secret",
		"bearer  secret ": "secret",
		"Bearer":          "",
		"Bearer ":         "",
		"Basic secret":    "",
		"secret":          "",
		"":                "",
	} {
		if got := BearerToken(&http.Request{Header: http.Header{"Authorization": {header}}}); got != want {
			t.Errorf("BearerToken of %q = %q, want %q", header, got, want)
		}
	}
}
