package admission

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"knative.dev/pkg/apis"
)

func TestTheDeadlineIsTheTimeoutOfTheAPIServer(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"timeout=2s": 2 * time.Second, "timeout=30s": 30 * time.Second,
		"timeout=1000h": 30 * time.Second, // more than a webhook can have
		"":              5 * time.Second, "timeout=soon": 5 * time.Second, "timeout=-1s": 5 * time.Second, "timeout=0s": 5 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &http.Request{URL: &url.URL{RawQuery: query}}
			ctx, cancel := WithDeadline(apis.WithHTTPRequest(t.Context(), r))
			defer cancel()
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != want {
				t.Errorf("%q: %s, want %s", query, time.Until(at), want)
			}
		})
	}
}
