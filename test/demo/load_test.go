package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestALoadCountsWhoAnswers(t *testing.T) {
	l := &load{}
	for _, by := range []string{"web-00002", "web-00001", "web-00001"} {
		l.add(by, nil)
	}
	if !l.onlyLast(2, "web-00001") || l.onlyLast(3, "web-00001") || l.onlyLast(4, "web-00001") {
		t.Error("the last 2 of 3 requests were answered by web-00001")
	}
	if got, want := l.take(), "web-00001 answered 2, web-00002 answered 1, none failed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if l.onlyLast(1, "web-00001") {
		t.Error("the requests are counted again")
	}
	if l.add("", errors.New("refused")) || l.failed() == nil {
		t.Error("a request that failed does not end the load")
	}
}

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
			got, err := (&load{url: server.URL, host: "web.test"}).send(t.Context())
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
