package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// FuzzAnswer evaluates answers of a provider that may echo the credentials. The result is
// bounded, contains no part of the credentials, and can be stored.
func FuzzAnswer(f *testing.F) {
	f.Add(200, `{"state":"done","ticket":7}`, "", "body.state == 'done'", "body.reason", "body.ticket", false)
	f.Add(429, `{"reason":"@"}`, "99999999999999999999", "", "body.reason", "headers", false)
	f.Add(503, `{"reason":"`+strings.Repeat("x", 195)+`@"}`, "Fri, 31 Dec 9999 23:59:59 GMT", "", "body.reason", "body", false)
	f.Add(200, `{"`+`\u005Ak9-Qx7_bearer":["\u005Ak9-Qx7_bearer"]}`, "-1", "", "", "body", false)
	f.Add(404, `[[[[[[[[1e308]]]]]]]]`, "1.5", "status / 0 == 1", "string(0.0/0.0)", "0.0/0.0", true)
	f.Add(400, `{"a":"\u0000\u202e\ud800"}`, "", "body", "body.a + body.a", "[body, {'k': body}]", false)
	f.Add(299, `not JSON @`, "0", "body == null", "headers['x-echo']", "bytes('@')", true)
	f.Add(302, `{"n":9223372036854775807}`, "", "body.n > 1", "string(body.n)", "timestamp('9999-12-31T23:59:59Z')", false)
	const credentials, part = "Zk9-Qx7_bearer", "Zk9"
	f.Fuzz(func(t *testing.T, status int, body, retryAfter, granted, message, keep string, revoke bool) {
		if strings.Contains(body+granted+message+keep+retryAfter, part) || status < 100 || status > 999 {
			return
		}
		body = strings.ReplaceAll(body, "@", credentials)
		var content any
		if json.Unmarshal([]byte(body), &content) == nil && strings.Contains(strings.ReplaceAll(fmt.Sprint(content), credentials, ""), part) {
			return // an escaped part is no echo
		}
		call := api.HTTPCall{Granted: granted, Message: message}
		if keep != "" {
			call.Keep = map[string]string{"k": keep}
		}
		endpoint := &url.URL{Scheme: "https", Host: "provider.example.com"}
		compiled, err := compileCall(endpoint, call)
		if err != nil {
			if field, _, _ := strings.Cut(err.Error(), ":"); !slices.Contains([]string{"granted", "message", "keep.k"}, field) {
				t.Errorf("the error names field %q: %v", field, err)
			}
			return
		}
		op := Grant
		if revoke {
			op = Revoke
		}
		header := http.Header{"Retry-After": {retryAfter}, "X-Echo": {"Bearer " + credentials}}
		now := time.Unix(1700000000, 0)
		began := time.Now()
		r := compiled.interpret(t.Context(), op, newResponse(status, header, []byte(body), credentials), now)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the evaluation took %s", took)
		}
		if !slices.Contains([]Outcome{Done, Pending, Denied, Failed}, r.Outcome) || r.Reason == "" || !r.Sent {
			t.Errorf("%+v", r)
		}
		if r.RetryAfter < 0 || r.RetryAfter > maxRetryAfter || r.RetryAfter > 0 && r.Outcome != Failed {
			t.Errorf("%q is %s: %+v", retryAfter, r.RetryAfter, r)
		}
		if utf8.RuneCountInString(r.Message) > 2*maxMessageLength || !utf8.ValidString(r.Message) || strings.ContainsFunc(r.Message, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("message %q", r.Message)
		}
		if granted == "" && (status == http.StatusNotFound || status == http.StatusGone) && r.Outcome != Failed {
			t.Errorf("the status of a wrong URL proves something: %+v", r)
		}
		kept, err := json.Marshal(r.Kept)
		if err != nil || strings.Contains(r.Message+string(kept), part) {
			t.Errorf("%v, message %q, kept %s", err, r.Message, kept)
		}
	})
}

// FuzzRequest builds requests from parameters. A parameter stays in its place: in one
// segment of the path, one value of the query, one header and one string of the body.
func FuzzRequest(f *testing.F) {
	f.Add("team-a", "10.0.0.0/8")
	f.Add(".", ".")
	f.Add("..", "%2e%2e")
	f.Add("../../admin", "?x=1#y")
	f.Add("a\r\nHost: evil", "\x7f\x00\u0085")
	f.Add("@evil.example.com", "\xff\xfe")
	f.Add("", "${key}")
	f.Add("a", "")
	f.Add("a", "./..")
	f.Add(`"}`, `\`)
	endpoint := &url.URL{Scheme: "https", Host: "provider.example.com", Path: "/base/"}
	compiled, err := compileCall(endpoint, api.HTTPCall{
		Path:    "/v1/${parameters.a}/.${parameters.b}/${parameters.a}${parameters.b}/x?u=${parameters.a}&v=${parameters.b}",
		Headers: map[string]string{"X-A": "${parameters.a}", "X-B": "b ${parameters.b}"},
		Body:    map[string]any{"a": "${parameters.a}", "both": "${parameters.a}-${parameters.b}", "all": "${parameters}", "list": []any{"$${key}", 1.5, nil}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return // parameters are JSON strings
		}
		r, err := compiled.request(t.Context(), Call{Op: Grant, Key: "key", IPs: []string{"10.0.0.1"}, Parameters: map[string]string{"a": a, "b": b}})
		if err != nil {
			if !strings.Contains(err.Error(), "dot segment") {
				t.Errorf("%q, %q: %v", a, b, err)
			}
			return
		}
		segments := strings.Split(r.URL.EscapedPath(), "/")
		if r.URL.Host != endpoint.Host || r.URL.User != nil || r.URL.Fragment != "" || len(segments) != 7 || segments[1] != "base" || segments[6] != "x" {
			t.Fatalf("%q, %q: %s", a, b, r.URL)
		}
		for _, segment := range segments {
			if plain, err := url.PathUnescape(segment); err != nil || plain == "." || plain == ".." {
				t.Errorf("segment %q of %s", segment, r.URL)
			}
		}
		if query := r.URL.Query(); len(query) != 2 || query.Get("u") != unescapedDots(a) || query.Get("v") != unescapedDots(b) {
			t.Errorf("%q, %q: query %q", a, b, r.URL.RawQuery)
		}
		for name, values := range r.Header {
			if !httpguts.ValidHeaderFieldName(name) || len(values) != 1 || !httpguts.ValidHeaderFieldValue(values[0]) {
				t.Errorf("header %q: %q", name, values)
			}
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			A, Both string
			All     map[string]string
			List    []any
		}
		if err := json.Unmarshal(raw, &body); err != nil || body.A != a || body.Both != a+"-"+b || body.All["a"] != a || body.All["b"] != b || body.List[0] != "${key}" {
			t.Errorf("%q, %q: body %s, %v", a, b, raw, err)
		}
	})
}

// unescapedDots returns a value as it arrives: dot segments are replaced.
func unescapedDots(s string) string {
	if s == "." || s == ".." {
		return "_"
	}
	return s
}

// FuzzTemplate parses templates. A text whose ${ is escaped is rendered as it is, and the
// rendering of any template is bounded and quotes no parameter in its error.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{
		"/v1/${ip}", "$${ip}", "$$${ip}", "${", "${}", "${'}'}", `${"\"}"}`, "${{'a': {'b': 1}}.a.b}", "${ips[1]}", "${parameters.nobody}",
		"${parameters.p.split(',')[7]}", "${int(parameters.p)}", "${ips.map(a, ips.map(b, ips.map(c, a + b + c)))}", "${base64.encode(b'x')}",
		"${kept.x.y}", "${1/0}", "${'%s'.format([parameters])}", "${'a'.matches('(a+)+$')}", "${parameters.p.replace('', parameters.p)}", "\xff${ip}\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped, err := parseTemplate(requestEnv, strings.ReplaceAll(text, "${", "$${"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := escaped.value(t.Context(), nil); err != nil || got != text {
			t.Errorf("%q is rendered as %q, %v", text, got, err)
		}
		parsed, err := parseTemplate(requestEnv, text)
		if err != nil {
			return
		}
		const parameter = "Zk9-Qx7,parameter"
		vars := variables(Call{Op: Grant, Key: "key", IPs: []string{"10.0.0.1", "fd00::1"}, Parameters: map[string]string{"p": parameter}})
		began := time.Now()
		value, err := parsed.value(t.Context(), vars)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%q took %s", text, took)
		}
		if err != nil {
			if strings.Contains(err.Error(), "Zk9") && !strings.Contains(text, "Zk9") {
				t.Errorf("%q: the error quotes a parameter: %v", text, err)
			}
			return
		}
		var out bytes.Buffer
		if err := json.NewEncoder(&out).Encode(value); err != nil || out.Len() > 16<<20 {
			t.Errorf("%q is rendered as %d bytes of JSON, %v", text, out.Len(), err)
		}
	})
}
