package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
)

// wrongCallbacks are servers with one fault in their callbacks and a required
// finding. Most faults make callbacks untrusted, which causes more findings.
var wrongCallbacks = map[string]struct {
	script string
	edit   func(object)
	finds  string
}{
	"of another order": {
		edit:  func(c object) { c["bizExecOrderId"] = "another" },
		finds: called,
	},
	"of another stage": {
		edit:  func(c object) { c["defenseStageEnum"] = "POST" },
		finds: called,
	},
	"of no stage": {
		edit:  func(c object) { delete(c, "defenseStageEnum") },
		finds: readable,
	},
	"with a contradicting checkPass": {
		edit:  func(c object) { c["verdict"].(object)["checkPass"] = false },
		finds: "a callback's checkPass agrees with its verdict",
	},
	"with another verdict than retrieve": {
		edit:  func(c object) { v := c["verdict"].(object); v["verdict"], v["checkPass"] = "fail", false },
		finds: retrieves,
	},
	"with an unknown verdict": {
		edit:  func(c object) { c["verdict"].(object)["verdict"] = "perhaps" },
		finds: meaning,
	},
	"with pods of another batch": {
		script: `{"default": {"as": "binary", "podResults": [{"pod": "stranger", "verdict": "pass"}]}}`,
		finds:  "a verdict names only pods of its batch",
	},
}

func TestEachFaultOfACallbackIsFound(t *testing.T) {
	for name, tc := range wrongCallbacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture{script: tc.script, callbackWait: 300 * time.Millisecond}
			if tc.edit != nil {
				f.callbacks = rewritten(func(body object) { tc.edit(body["callbackRequest"].(object)) }, signMillis)
			}
			expectFindings(t, f, nil, tc.finds)
		})
	}
}

func TestACallbackWithAWrongSignatureIsFound(t *testing.T) {
	keep := func(object) {}
	for name, tc := range map[string]struct {
		sign  func(http.Header, []byte)
		finds string
	}{
		"with the time in seconds": {signSeconds, timely},
		"with another token": {func(h http.Header, body []byte) {
			altershield.SignHeader(h, altershield.DefaultHeaderPrefix, testPlatform, body, "another", time.Now())
		}, signed},
		"in the name of another platform": {func(h http.Header, body []byte) {
			altershield.SignHeader(h, altershield.DefaultHeaderPrefix, "another", body, testToken, time.Now())
		}, signed},
		"not at all":        {func(h http.Header, _ []byte) { h.Del(altershield.DefaultHeaderPrefix + altershield.HeaderSign) }, signed},
		"over another body": {func(h http.Header, body []byte) { signMillis(h, append(body, ' ')) }, signed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectFindings(t, fixture{callbacks: rewritten(keep, tc.sign), callbackWait: 300 * time.Millisecond}, nil, tc.finds)
		})
	}
}

func TestACallbackWithAWrongContentTypeIsReadAndFound(t *testing.T) {
	plain := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Content-Type", "text/plain")
			next.ServeHTTP(w, r)
		})
	}
	expectFindings(t, fixture{callbacks: plain}, []string{"a callback's content type is JSON"}, "")
}

// If callbacks contradict each other, the fail counts.
func TestContradictingCallbacksAreFound(t *testing.T) {
	contradicting := func(next http.Handler) http.Handler {
		again := rewritten(func(body object) {
			v := body["callbackRequest"].(object)["verdict"].(object)
			v["verdict"], v["checkPass"] = "fail", false
		}, signMillis)(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := bodyOf(r)
			second := r.Clone(r.Context())
			second.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			again.ServeHTTP(discard{http.Header{}}, second)
		})
	}
	f := fixture{script: "{}", callbackWait: 10 * time.Second, callbacks: contradicting}
	expectFindings(t, f, nil, "callbacks of one stage agree")
	if r := try(t, f); !r.counts(fail) {
		t.Errorf("the outcomes are %v", r.outcomes)
	}
}

func TestACloudEventOfAnotherTypeIsFound(t *testing.T) {
	renamed := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Ce-Type", "dev.breakwater.changepod.verdict.v0")
			next.ServeHTTP(w, r)
		})
	}
	expectFindings(t, fixture{script: `{"default": {"as": "binary"}}`, callbackWait: 300 * time.Millisecond, callbacks: renamed}, nil, readable)
}

func signMillis(h http.Header, body []byte) {
	altershield.SignHeader(h, altershield.DefaultHeaderPrefix, testPlatform, body, testToken, time.Now())
}

func signSeconds(h http.Header, body []byte) {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	h.Set(altershield.DefaultHeaderPrefix+altershield.HeaderTimestamp, timestamp)
	h.Set(altershield.DefaultHeaderPrefix+altershield.HeaderSign, altershield.Sign(timestamp, body, testToken))
}

// rewritten changes a callback and signs it again.
func rewritten(edit func(object), sign func(http.Header, []byte)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := bodyOf(r)
			received := object{}
			if json.Unmarshal(body, &received) == nil {
				edit(received)
				body, _ = json.Marshal(received)
			}
			sign(r.Header, body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		})
	}
}

// discard is an http.ResponseWriter that ignores the response.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
