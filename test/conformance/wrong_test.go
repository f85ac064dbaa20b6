package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/altershield"
)

type object = map[string]any

// wrongServers are servers with one fault each and the expected findings. They
// prove that the suite detects faults.
var wrongServers = map[string]struct {
	server fixture
	finds  []string
}{
	"opens an order again": {
		fixture{calls: answers(func(c call) { c.replace("106", success(object{"orderId": "again"})) })},
		[]string{"opening an existing order is answered with 106"},
	},
	"does not recognize an existing order": {
		fixture{calls: answers(func(c call) { c.replace("106", rejection("105")) })},
		[]string{"opening an order twice results in one order", "opening an existing order is answered with 106"},
	},
	"omits null fields": {
		fixture{calls: answers(func(c call) {
			for name, value := range c.out {
				if value == nil {
					delete(c.out, name)
				}
			}
		})},
		[]string{"success, resultCode, msg and domain are always present, even if null"},
	},
	"rejects without a code": {
		fixture{calls: answers(func(c call) { c.replace("103", rejection("")) })},
		[]string{"a rejection has a code"},
	},
	"does not check signatures": {
		fixture{calls: signsAgain},
		[]string{
			"a call with a wrong signature is rejected with 102", "a call from an unknown platform is rejected with 102",
			"a call without a signature is rejected with 102",
		},
	},
	"checks the signature first": {
		fixture{calls: verifiesFirst(func(body []byte) []byte { return body })},
		[]string{"arguments are checked before the signature", "a body that is not JSON is answered with HTTP 400"},
	},
	"signs line ends": {
		fixture{calls: verifiesFirst(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte("\r\n"), []byte("--")) })},
		[]string{"arguments are checked before the signature", "the signature is over the body without line ends", "a body that is not JSON is answered with HTTP 400"},
	},
	"rejects unknown fields": {
		fixture{calls: rejectsIf(func(in object) bool { _, ok := in["breakwaterConformance"]; return ok })},
		[]string{"unknown fields are ignored"},
	},
	"accepts 64 bytes of an order id": {
		fixture{calls: rejectsIf(func(in object) bool { return len(textOf(in["bizExecOrderId"])) > 64 })},
		[]string{"an order id may have 128 bytes"},
	},
	"starts batches of any order": {
		fixture{calls: answers(func(c call) {
			if c.action == actionStartBatch && strings.HasSuffix(textOf(c.in["bizExecOrderId"]), "/never-opened") {
				c.replace("101", success(object{"nodeId": "n", "skipCheck": false}))
			}
		})},
		[]string{"a batch of an unknown order is rejected"},
	},
	"starts without a node": {
		fixture{calls: answers(func(c call) {
			if c.action == actionStartBatch {
				c.out["domain"] = object{"nodeId": nil}
			}
		})},
		nil,
	},
	"has one node for all starts": {
		fixture{calls: oneNode()},
		nil,
	},
	"finishes unknown nodes": {
		fixture{calls: answers(func(c call) {
			if c.action == "submitChangeFinishNotify" && c.in["nodeId"] == "no-such-node" {
				c.replace("103", success(object{"nodeId": "no-such-node"}))
			}
		})},
		[]string{"the finish of an unknown node is rejected"},
	},
	"finishes a node whose check runs": {
		fixture{
			// The check runs until the suite has sent its finish.
			script: `{"checks": [{"match": {"stage": "PRE", "batchNo": 1}, "then": {"delay": "2s"}}]}`,
			calls: answers(func(c call) {
				if c.in["nodeId"] != "no-such-node" {
					c.replace("103", success(object{"nodeId": c.in["nodeId"]}))
				}
			}),
		},
		[]string{"a finish before the PRE verdict is rejected with 103"},
	},
	"passes every retrieve": {
		fixture{calls: answers(func(c call) {
			if c.action == actionRetrieve && c.status == http.StatusOK {
				c.set(success(object{"finished": true, "verdict": object{"verdict": "pass"}}))
			}
		})},
		[]string{"retrieve does not return pass for a check that was not requested", "retrieve of an unknown node is rejected"},
	},
	"passes a failed check at retrieve": {
		fixture{
			script: `{"checks": [{"match": {"stage": "POST"}, "then": {"verdict": "fail"}}]}`,
			calls: answers(func(c call) {
				if c.action == actionRetrieve && c.in["nodeId"] != "no-such-node" && c.status == http.StatusOK {
					c.set(success(object{"finished": true, "verdict": object{"verdict": "pass"}}))
				}
			}),
		},
		[]string{"retrieve does not return pass for a check that was not requested", retrieves},
	},
	"fails a passed check at retrieve": {
		fixture{calls: answers(func(c call) {
			if c.action == actionRetrieve && c.in["nodeId"] != "no-such-node" && c.status == http.StatusOK {
				c.set(success(object{"finished": true, "verdict": object{"verdict": "fail"}}))
			}
		})},
		nil,
	},
	"rejects a repeated event": {
		fixture{calls: rejectsSecond("submitChangeEventAction")},
		[]string{"recording an event twice is not an error"},
	},
	"rejects with an HTTP status": {
		fixture{calls: answers(func(c call) {
			if c.out["resultCode"] == "103" {
				c.status = http.StatusConflict
				c.set(c.out)
			}
		})},
		nil,
	},
}

// found has one expected finding for each fault that causes many findings.
var found = map[string]string{
	"starts without a node":            starts[1],
	"has one node for all starts":      "every start creates a new node",
	"fails a passed check at retrieve": retrieves,
	"rejects with an HTTP status":      envelopes,
}

func TestEachFaultOfAJudgeIsFound(t *testing.T) {
	for name, tc := range wrongServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectFindings(t, tc.server, tc.finds, found[name])
		})
	}
}

// expectFindings runs the suite against a server with a fault. It expects the
// finding one, or exactly the findings all if one is empty.
func expectFindings(t *testing.T, f fixture, all []string, one string) {
	t.Helper()
	if f.script == "" {
		f.script = "{}"
	}
	if f.callbackWait == 0 {
		f.callbackWait = 10 * time.Second
	}
	r := try(t, f)
	got := with(r.failed(required), r.failed(published)...)
	switch {
	case one != "" && !slices.Contains(got, one):
		t.Errorf("found %q, but not %q", got, one)
	case one == "":
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if t.Failed() {
		_ = r.print(t.Output())
	}
}

// call is one call to a wrong server, with its answer.
type call struct {
	action string
	in     object
	*answered
}

type answered struct {
	status int
	out    object
}

func (a *answered) set(out object) { a.out = out }

// replace replaces the answer if it has the code.
func (a *answered) replace(code string, out object) {
	if a.out["resultCode"] == code {
		a.set(out)
	}
}

func success(domain object) object {
	return object{"success": true, "resultCode": "000", "msg": nil, "domain": domain}
}

func rejection(code string) object {
	return object{"success": false, "resultCode": code, "msg": "no", "domain": nil}
}

// answers changes the answers of the double.
func answers(edit func(call)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := bodyOf(r)
			recorded := httptest.NewRecorder()
			next.ServeHTTP(recorded, r)
			c := call{path.Base(r.URL.Path), object{}, &answered{recorded.Code, object{}}}
			if json.Unmarshal(body, &c.in) != nil || json.Unmarshal(recorded.Body.Bytes(), &c.out) != nil {
				w.WriteHeader(recorded.Code)
				_, _ = w.Write(recorded.Body.Bytes())
				return
			}
			edit(c)
			respond(w, c.status, c.out)
		})
	}
}

func respond(w http.ResponseWriter, status int, out object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out)
}

// bodyOf reads a body and restores it.
func bodyOf(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}

// rejectsIf answers 101 if the body meets a condition.
func rejectsIf(condition func(object) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			in := object{}
			if json.Unmarshal(bodyOf(r), &in) == nil && condition(in) {
				respond(w, http.StatusOK, rejection("101"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// signsAgain signs every call again.
func signsAgain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		altershield.SignHeader(r.Header, altershield.DefaultHeaderPrefix, testPlatform, bodyOf(r), testToken, time.Now())
		next.ServeHTTP(w, r)
	})
}

// verifiesFirst checks the signature before anything else, over the result of
// signedBody. It answers 101 to an invalid body.
func verifiesFirst(signedBody func([]byte) []byte) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := bodyOf(r)
			if altershield.Verify(r.Header, altershield.DefaultHeaderPrefix, testPlatform, signedBody(body), testToken, time.Now(), 0) != nil {
				respond(w, http.StatusOK, rejection("102"))
				return
			}
			if !json.Valid(body) {
				respond(w, http.StatusOK, rejection("101"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// oneNode answers a repeated start of a batch with the first answer for its
// number.
func oneNode() func(http.Handler) http.Handler {
	var mu sync.Mutex
	first := map[string]object{}
	return answers(func(c call) {
		mu.Lock()
		defer mu.Unlock()
		if c.action != actionStartBatch || c.out["success"] != true {
			return
		}
		if kept, ok := first[textOf(c.in["batchNo"])]; ok {
			c.set(kept)
			return
		}
		first[textOf(c.in["batchNo"])] = c.out
	})
}

// rejectsSecond rejects the second call of an action.
func rejectsSecond(action string) func(http.Handler) http.Handler {
	var mu sync.Mutex
	seen := false
	return answers(func(c call) {
		mu.Lock()
		defer mu.Unlock()
		if c.action != action {
			return
		}
		if seen {
			c.set(rejection("106"))
		}
		seen = true
	})
}
