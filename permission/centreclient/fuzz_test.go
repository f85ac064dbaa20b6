package centreclient

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
)

type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }

// FuzzApply reads answers of the permission centre. Only an answer with a status below
// 400 and an application is accepted, an error has the status, and the delay before a
// retry is limited.
func FuzzApply(f *testing.F) {
	f.Add(201, `{"id":"a","cluster":"c1","podIPs":["10.0.0.1"],"state":"Granted","permissions":[{"permission":"p","nextTry":"2026-01-01T00:00:00Z"}],"version":7}`, "")
	f.Add(429, `{"reason":"TooManyRequests","message":"slow down"}`, "9223372036854775807")
	f.Add(503, `<html>`, "-1")
	f.Add(429, ``, "9223372036")
	f.Add(409, `{"reason":"Conflict","message":"`+strings.Repeat("m", 5000)+`"}`, "9223372036")
	f.Add(204, ` `, "")
	f.Add(200, `{"id":7}`, "")
	f.Add(200, `{"version":`+strings.Repeat("9", 5000)+`}`, "")
	f.Fuzz(func(t *testing.T, status int, body, retryAfter string) {
		if status < 200 || status > 599 || status/100 == 3 {
			return
		}
		c := New(Options{URL: func() string { return "http://centre.invalid" }, HTTP: &http.Client{Transport: answering(func() *http.Response {
			return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(strings.NewReader(body))}
		})}})
		app, err := c.Apply(t.Context(), api.ApplicationRequest{})
		var failed *StatusError
		switch {
		case err == nil:
			if status >= 400 {
				t.Errorf("status %d is a success: %+v", status, app)
			}
			raw, err := json.Marshal(app)
			var again api.Application
			if err != nil || json.Unmarshal(raw, &again) != nil || !cmp.Equal(app, again) {
				t.Errorf("%+v is encoded as %s: %v", app, raw, err)
			}
		case errors.As(err, &failed) != (status >= 400) || failed != nil && failed.Status != status:
			t.Errorf("status %d: %v", status, err)
		}
		if wait := RetryAfter(err); wait < 0 || wait > time.Hour || (wait > 0) != (status == http.StatusTooManyRequests) {
			t.Errorf("status %d, Retry-After %q: %s", status, retryAfter, wait)
		}
		if err != nil && len(err.Error()) > 2048 {
			t.Errorf("an error of %d bytes: %.200v", len(err.Error()), err)
		}
	})
}
