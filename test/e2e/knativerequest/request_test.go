package knativerequest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestTheAnswerOfARevision(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"its name":     {http.StatusOK, `{"revision":"web-00001"}`, "web-00001"},
		"an error":     {http.StatusServiceUnavailable, `{"revision":"web-00001"}`, ""},
		"another page": {http.StatusOK, `<html>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host != "web.test" {
					t.Errorf("a request to %s", r.Host)
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body)) // the client reports it
			}))
			defer server.Close()
			got, err := Target{url: server.URL, Host: "web.test"}.Ask(t.Context(), time.Minute)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestTheAnswerOfARevisionOfTheShop(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		pod    string
		want   string
	}{
		"its pod":             {http.StatusOK, "web-00002-deployment-6d5f8c7b9d-x2v4k", "web-00002"},
		"an error of the pod": {http.StatusInternalServerError, "web-00002-deployment-6d5f8c7b9d-x2v4k", "web-00002"},
		"an error of another": {http.StatusServiceUnavailable, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Shop-Pod", tc.pod)
				w.WriteHeader(tc.status)
			}))
			defer server.Close()
			got, err := Target{url: server.URL, Host: "web.test"}.Buy(t.Context(), time.Minute)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
