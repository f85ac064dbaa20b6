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

// wrongJudges are judges of which each does one thing wrong, and what the suite
// says of it. A suite that cannot say this proves nothing of a good judge.
var wrongJudges = map[string]struct {
	trial trial
	finds []string
}{
	"opens an order again": {
		trial{calls: answers(func(c call) { c.turn("106", success(object{"orderId": "again"})) })},
		[]string{"an order that exists is answered with 106"},
	},
	"does not know an order again": {
		trial{calls: answers(func(c call) { c.turn("106", refusal("105")) })},
		[]string{"an order that is opened twice is one order", "an order that exists is answered with 106"},
	},
	"leaves out what is null": {
		trial{calls: answers(func(c call) {
			for name, value := range c.out {
				if value == nil {
					delete(c.out, name)
				}
			}
		})},
		[]string{"success, resultCode, msg and domain are always there, if null"},
	},
	"refuses without a code": {
		trial{calls: answers(func(c call) { c.turn("103", refusal("")) })},
		[]string{"a refusal has a code"},
	},
	"believes everybody": {
		trial{calls: resigned},
		[]string{
			"a call with a wrong signature is refused with 102", "a call of an unknown platform is refused with 102",
			"a call without a signature is refused with 102",
		},
	},
	"looks at the signature first": {
		trial{calls: verifiesFirst(func(body []byte) []byte { return body })},
		[]string{"arguments are checked before the signature", "a body that is not JSON is HTTP 400"},
	},
	"signs line ends": {
		trial{calls: verifiesFirst(func(body []byte) []byte { return bytes.ReplaceAll(body, []byte("\r\n"), []byte("--")) })},
		[]string{"arguments are checked before the signature", "the signature is over the body without line ends", "a body that is not JSON is HTTP 400"},
	},
	"knows its fields only": {
		trial{calls: refuses(func(in object) bool { _, ok := in["breakwaterConformance"]; return ok })},
		[]string{"a field that the judge does not know is ignored"},
	},
	"has room for 64 bytes of an order id": {
		trial{calls: refuses(func(in object) bool { return len(text(in["bizExecOrderId"])) > 64 })},
		[]string{"an order id may have 128 bytes"},
	},
	"starts batches of any order": {
		trial{calls: answers(func(c call) {
			if c.action == actionStartBatch && strings.HasSuffix(text(c.in["bizExecOrderId"]), "/never-opened") {
				c.turn("101", success(object{"nodeId": "n", "skipCheck": false}))
			}
		})},
		[]string{"a batch of an unknown order is refused"},
	},
	"starts without a node": {
		trial{calls: answers(func(c call) {
			if c.action == actionStartBatch {
				c.out["domain"] = object{"nodeId": nil}
			}
		})},
		nil,
	},
	"gives one node to all": {
		trial{calls: oneNode()},
		nil,
	},
	"finishes nodes that it does not know": {
		trial{calls: answers(func(c call) {
			if c.action == "submitChangeFinishNotify" && c.in["nodeId"] == "no-such-node" {
				c.turn("103", success(object{"nodeId": "no-such-node"}))
			}
		})},
		[]string{"the finish of an unknown node is refused"},
	},
	"finishes a node whose check runs": {
		trial{
			// The check runs for as long as the suite takes to finish its node.
			script: `{"checks": [{"match": {"stage": "PRE", "batchNo": 1}, "then": {"delay": "2s"}}]}`,
			calls: answers(func(c call) {
				if c.in["nodeId"] != "no-such-node" {
					c.turn("103", success(object{"nodeId": c.in["nodeId"]}))
				}
			}),
		},
		[]string{"a finish before the PRE verdict is refused with 103"},
	},
	"passes whatever is retrieved": {
		trial{calls: answers(func(c call) {
			if c.action == actionRetrieve && c.status == http.StatusOK {
				c.set(success(object{"finished": true, "verdict": object{"verdict": "pass"}}))
			}
		})},
		[]string{"a stage that was not asked for has not passed", "nothing is known of an unknown node"},
	},
	"passes at retrieve what failed": {
		trial{
			script: `{"checks": [{"match": {"stage": "POST"}, "then": {"verdict": "fail"}}]}`,
			calls: answers(func(c call) {
				if c.action == actionRetrieve && c.in["nodeId"] != "no-such-node" && c.status == http.StatusOK {
					c.set(success(object{"finished": true, "verdict": object{"verdict": "pass"}}))
				}
			}),
		},
		[]string{"a stage that was not asked for has not passed", retrieves},
	},
	"fails at retrieve what passed": {
		trial{calls: answers(func(c call) {
			if c.action == actionRetrieve && c.in["nodeId"] != "no-such-node" && c.status == http.StatusOK {
				c.set(success(object{"finished": true, "verdict": object{"verdict": "fail"}}))
			}
		})},
		nil,
	},
	"takes an event only once": {
		trial{calls: once("submitChangeEventAction")},
		[]string{"an event is recorded, and recorded again without an error"},
	},
	"says refusals with HTTP": {
		trial{calls: answers(func(c call) {
			if c.out["resultCode"] == "103" {
				c.status = http.StatusConflict
				c.set(c.out)
			}
		})},
		nil,
	},
}

// found is what has to be among the findings where more follows from it than
// is worth a list.
var found = map[string]string{
	"starts without a node":         starts[1],
	"gives one node to all":         "every start makes a node of its own",
	"fails at retrieve what passed": retrieves,
	"says refusals with HTTP":       envelopes,
}

func TestAWrongJudgeIsFoundOut(t *testing.T) {
	for name, tc := range wrongJudges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finds(t, tc.trial, tc.finds, found[name])
		})
	}
}

// finds tries a judge of which something is wrong.
func finds(t *testing.T, tr trial, all []string, one string) {
	t.Helper()
	if tr.script == "" {
		tr.script = "{}"
	}
	if tr.patience == 0 {
		tr.patience = 10 * time.Second
	}
	r := try(t, tr)
	got := with(r.failed(required), r.failed(published)...)
	switch {
	case one != "" && !slices.Contains(got, one):
		t.Errorf("found %q, not that %q does not hold", got, one)
	case one == "":
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if t.Failed() {
		_ = r.print(t.Output())
	}
}

// call is one call, as a wrong judge answers it.
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

// turn answers otherwise where the answer has that code.
func (a *answered) turn(code string, out object) {
	if a.out["resultCode"] == code {
		a.set(out)
	}
}

func success(domain object) object {
	return object{"success": true, "resultCode": "000", "msg": nil, "domain": domain}
}

func refusal(code string) object {
	return object{"success": false, "resultCode": code, "msg": "no", "domain": nil}
}

// answers changes what the double answers.
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

// bodyOf reads a body and leaves it there.
func bodyOf(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}

// refuses answers 101 where a body has something.
func refuses(what func(object) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			in := object{}
			if json.Unmarshal(bodyOf(r), &in) == nil && what(in) {
				respond(w, http.StatusOK, refusal("101"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// resigned signs whatever comes.
func resigned(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		altershield.SignHeader(r.Header, altershield.DefaultHeaderPrefix, testPlatform, bodyOf(r), testToken, time.Now())
		next.ServeHTTP(w, r)
	})
}

// verifiesFirst checks the signature over the body that of makes of it, before
// anything else, and answers 101 to what it cannot read.
func verifiesFirst(of func([]byte) []byte) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := bodyOf(r)
			if altershield.Verify(r.Header, altershield.DefaultHeaderPrefix, testPlatform, of(body), testToken, time.Now(), 0) != nil {
				respond(w, http.StatusOK, refusal("102"))
				return
			}
			if !json.Valid(body) {
				respond(w, http.StatusOK, refusal("101"))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// oneNode gives every later start of a batch the answer of the first with its
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
		if kept, ok := first[text(c.in["batchNo"])]; ok {
			c.set(kept)
			return
		}
		first[text(c.in["batchNo"])] = c.out
	})
}

// once refuses an action the second time.
func once(action string) func(http.Handler) http.Handler {
	var mu sync.Mutex
	seen := false
	return answers(func(c call) {
		mu.Lock()
		defer mu.Unlock()
		if c.action != action {
			return
		}
		if seen {
			c.set(refusal("106"))
		}
		seen = true
	})
}
