package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

const secret = "secret-bearer-token"

// newClient returns the client of a provider that the handler serves.
func newClient(t *testing.T, handler http.HandlerFunc, change func(*api.Provider)) Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	p := api.Provider{Meta: api.Meta{Name: "p"}, Type: api.ProviderHTTP, Endpoint: server.URL, CredentialsRef: "secret", TimeoutSeconds: 1, CanRevoke: true,
		HTTP: &api.HTTPCalls{Grant: api.HTTPCall{Path: "/grants"}, Revoke: &api.HTTPCall{Method: "DELETE", Path: "/grants"}}}
	if change != nil {
		change(&p)
	}
	return newClientOf(t, p, []string{"127.0.0.0/8"})
}

func newClientOf(t *testing.T, p api.Provider, networks []string) Client {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	egress, err := NewEgress([]string{"127.0.0.1", "localhost", "*.example.com"}, networks, []string{"127.0.0.9"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Factory{Egress: egress, Credentials: Credentials{Dir: dir}}.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAResponseIsClassifiedAsGrantedDeniedOrFailed(t *testing.T) {
	const revoked = "status == 200 || status == 404 && body.code == 'NoGrant'"
	for name, tc := range map[string]struct {
		call   api.HTTPCall
		op     Op
		status int
		body   string
		header string // Retry-After
		want   Result
	}{
		"2xx is granted":                         {status: 201, want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"422 is denied":                          {status: 422, want: Result{Outcome: Denied, Reason: ReasonDenied, Message: "the provider denied the request (HTTP 422)", Sent: true}},
		"403 failed: credentials":                {status: 403, want: Result{Outcome: Failed, Reason: ReasonCredentialsRejected, Message: "the provider forbids the call (HTTP 403), perhaps because of the centre's credentials; if not, set http.grant.denied", Sent: true}},
		"404 failed: wrong URL":                  {status: 404, want: Result{Outcome: Failed, Reason: ReasonProviderMisconfigured, Message: "the provider answered HTTP 404, perhaps because the URL is wrong; if not, set http.grant.denied", Sent: true}},
		"condition denied on 404":                {call: api.HTTPCall{Denied: "status == 404 && body.code == 'NoModule'"}, status: 404, body: `{"code":"NoModule"}`, want: Result{Outcome: Denied, Reason: ReasonDenied, Message: "the provider denied the request (HTTP 404)", Sent: true}},
		"5xx failed":                             {status: 503, want: Result{Outcome: Failed, Reason: ReasonProviderError, Message: "the provider answered HTTP 503, which is neither granted nor denied", Sent: true}},
		"408 failed":                             {status: 408, want: Result{Outcome: Failed, Reason: ReasonProviderError, Message: "the provider answered HTTP 408, which is neither granted nor denied", Sent: true}},
		"401 failed: credentials":                {status: 401, want: Result{Outcome: Failed, Reason: ReasonCredentialsRejected, Message: "the provider rejects the centre's credentials (HTTP 401)", Sent: true}},
		"429 failed: throttled":                  {status: 429, header: "7", want: Result{Outcome: Failed, Reason: ReasonProviderThrottled, Message: "the provider asks for fewer calls (HTTP 429)", RetryAfter: 7 * time.Second, Sent: true}},
		"Retry-After is at most an hour":         {status: 429, header: "999999999", want: Result{Outcome: Failed, Reason: ReasonProviderThrottled, Message: "the provider asks for fewer calls (HTTP 429)", RetryAfter: time.Hour, Sent: true}},
		"negative Retry-After is ignored":        {status: 429, header: "-5", want: Result{Outcome: Failed, Reason: ReasonProviderThrottled, Message: "the provider asks for fewer calls (HTTP 429)", Sent: true}},
		"condition granted is true":              {call: api.HTTPCall{Granted: "body.code == 0"}, status: 200, body: `{"code":0}`, want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"condition that compares with a double":  {call: api.HTTPCall{Granted: "body.code == 0.0 && body.code < 0.5 && body.code in [0.0] && double(body.code) + 0.5 == 0.5"}, status: 200, body: `{"code":0}`, want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"condition with a fraction":              {call: api.HTTPCall{Granted: "body.code == 1.5 && body.code > 1 && body.code < 2u"}, status: 200, body: `{"code":1.5}`, want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"condition with a large integer":         {call: api.HTTPCall{Granted: "body.code == 9007199254740993 && body.code != 9007199254740992"}, status: 200, body: `{"code":9007199254740993}`, want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"condition with an infinite number":      {call: api.HTTPCall{Granted: "body.code > 1"}, status: 200, body: `{"code":1e999}`, want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"condition on JSON with a rest":          {call: api.HTTPCall{Granted: "body.code == 0"}, status: 200, body: `{"code":0}{}`, want: Result{Outcome: Failed, Reason: ReasonProviderError, Message: "the provider answered HTTP 200, which is neither granted nor denied", Sent: true}},
		"condition granted is false":             {call: api.HTTPCall{Granted: "body.code == 0"}, status: 200, body: `{"code":5}`, want: Result{Outcome: Failed, Reason: ReasonProviderError, Message: "the provider answered HTTP 200, which is neither granted nor denied", Sent: true}},
		"condition denied is true":               {call: api.HTTPCall{Granted: "body.code == 0", Denied: "body.code == 5", Message: "body.why"}, status: 200, body: `{"code":5,"why":"no such module\nat all"}`, want: Result{Outcome: Denied, Reason: ReasonDenied, Message: "the provider denied the request (HTTP 200): no such module at all", Sent: true}},
		"condition on a body that is not JSON":   {call: api.HTTPCall{Granted: "body.code == 0"}, status: 200, body: `<html>`, want: Result{Outcome: Failed, Reason: ReasonProviderError, Message: "the provider answered HTTP 200, which is neither granted nor denied", Sent: true}},
		"404 does not prove a revocation":        {op: Revoke, status: 404, want: Result{Outcome: Failed, Reason: ReasonProviderMisconfigured, Message: "the provider answered HTTP 404, perhaps because the URL is wrong; if it means that there is no such grant, set http.revoke.granted", Sent: true}},
		"410 does not prove a revocation":        {op: Revoke, status: 410, want: Result{Outcome: Failed, Reason: ReasonProviderMisconfigured, Message: "the provider answered HTTP 410, perhaps because the URL is wrong; if it means that there is no such grant, set http.revoke.granted", Sent: true}},
		"404 of a page does not meet granted":    {call: api.HTTPCall{Granted: revoked}, op: Revoke, status: 404, body: `<html>`, want: Result{Outcome: Failed, Reason: ReasonProviderMisconfigured, Message: "the provider answered HTTP 404, perhaps because the URL is wrong; if it means that there is no such grant, set http.revoke.granted", Sent: true}},
		"404 that meets granted is revoked":      {call: api.HTTPCall{Granted: revoked}, op: Revoke, status: 404, body: `{"code":"NoGrant"}`, want: Result{Outcome: Done, Reason: ReasonRevoked, Sent: true}},
		"pending precedes 404 of a revocation":   {call: api.HTTPCall{Pending: "status == 404"}, op: Revoke, status: 404, want: Result{Outcome: Pending, Reason: ReasonPending, Message: "the provider has not decided yet", Sent: true}},
		"2xx with more than 256 KiB":             {call: api.HTTPCall{Denied: "body.code == 5"}, status: 200, body: `{"code":5,"x":"` + strings.Repeat("x", maxResponseSize) + `"}`, want: Result{Outcome: Failed, Reason: ReasonProviderError, Message: "the response has more than 256 KiB", Sent: true}},
		"more than 256 KiB without a condition":  {status: 200, body: strings.Repeat("x", maxResponseSize+1), want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"more than 256 KiB with a value to keep": {call: api.HTTPCall{Keep: map[string]string{"id": "body.id"}}, status: 200, body: strings.Repeat("x", maxResponseSize+1), want: Result{Outcome: Failed, Reason: ReasonProviderError, Message: "the response has more than 256 KiB", Sent: true}},
		"2xx with 256 KiB":                       {call: api.HTTPCall{Denied: "body.code == 5"}, status: 200, body: `{"code":1,"x":"` + strings.Repeat("x", maxResponseSize-17) + `"}`, want: Result{Outcome: Done, Reason: ReasonGranted, Sent: true}},
		"429 with more than 256 KiB":             {status: 429, header: "7", body: strings.Repeat("x", maxResponseSize+1), want: Result{Outcome: Failed, Reason: ReasonProviderThrottled, Message: "the provider asks for fewer calls (HTTP 429)", RetryAfter: 7 * time.Second, Sent: true}},
		"a long message is cut":                  {call: api.HTTPCall{Message: "body.why"}, status: 400, body: `{"why":"` + strings.Repeat("x", 500) + `"}`, want: Result{Outcome: Denied, Reason: ReasonDenied, Message: "the provider denied the request (HTTP 400): " + strings.Repeat("x", 200) + "…", Sent: true}},
		"a credential is removed from a message": {call: api.HTTPCall{Message: "body.why"}, status: 400, body: `{"why":"token ` + secret + ` is old"}`, want: Result{Outcome: Denied, Reason: ReasonDenied, Message: "the provider denied the request (HTTP 400): token … is old", Sent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+secret || r.Header.Get("Idempotency-Key") != "key-1" {
					t.Errorf("headers: %v", r.Header)
				}
				if tc.header != "" {
					w.Header().Set("Retry-After", tc.header)
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}, func(p *api.Provider) {
				call := tc.call
				call.Path = "/grants"
				if tc.op == Revoke {
					p.HTTP.Revoke = &call
					return
				}
				p.HTTP.Grant = call
			})
			op := tc.op
			if op == "" {
				op = Grant
			}
			got := c.Call(t.Context(), Call{Op: op, Key: "key-1", IPs: []string{"10.0.0.1"}})
			if len(got.Kept) == 0 {
				got.Kept = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The list is long enough for CEL to look at the context.
func TestAConditionIsEvaluatedAfterTheTimeoutOfTheCall(t *testing.T) {
	call, err := compileCall(&url.URL{Scheme: "https", Host: "provider.example.com"}, api.HTTPCall{Denied: "body.exists(code, code == 5)"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := []byte("[" + strings.Repeat("1,", 1000) + "5]")
	if got := call.interpret(ctx, Grant, newResponse(200, nil, body, ""), time.Now()); got.Outcome != Denied {
		t.Errorf("outcome %s, want %s", got.Outcome, Denied)
	}
}

func TestParametersAreEscapedInTemplates(t *testing.T) {
	var path, query, header string
	var body map[string]any
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		path, query, header = r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("X-Pod")
		_ = json.NewDecoder(r.Body).Decode(&body)
		_, _ = io.WriteString(w, `{"ticket":{"id":17}}`)
	}, func(p *api.Provider) {
		p.HTTP.Grant = api.HTTPCall{Path: "/m/${parameters.module}/x?q=${parameters.module}", Headers: map[string]string{"X-Pod": "${pod.name}"},
			Body: map[string]any{"ips": "${ips}", "text": "module ${parameters.module}!", "list": []any{"${ip}", 7.0}, "map": "${{'a': key}}"},
			Keep: map[string]string{"id": "body.ticket.id"}}
	})
	evil := `../admin?x=1#"},"admin":true`
	got := c.Call(t.Context(), Call{Op: Grant, Key: "k", IPs: []string{"10.0.0.1", "fd00::1"}, Parameters: map[string]string{"module": evil},
		Pod: api.ApplicationRequest{Pod: "p\r\nX-Evil: 1"}})
	if got.Outcome != Done || got.Kept["id"] != int64(17) {
		t.Fatalf("%+v", got)
	}
	if want := "/m/" + strings.ReplaceAll(url.QueryEscape(evil), "+", "%20") + "/x"; path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	if values, _ := url.ParseQuery(query); values.Get("q") != evil || len(values) != 1 {
		t.Errorf("query %s", query)
	}
	if strings.ContainsAny(header, "\r\n") {
		t.Errorf("header %q", header)
	}
	want := map[string]any{"ips": []any{"10.0.0.1", "fd00::1"}, "text": "module " + evil + "!", "list": []any{"10.0.0.1", 7.0}, "map": map[string]any{"a": "k"}}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}

// The store encodes kept values as JSON.
func TestTheDigitsOfANumberInAnAnswerAreKept(t *testing.T) {
	for answer, want := range map[string]struct{ path, body string }{
		"1234567":              {"1234567", "1234567"},
		"-1234567890123456789": {"-1234567890123456789", "-1234567890123456789"},
		"18446744073709551615": {"18446744073709551615", "18446744073709551615"},
		"0.0000001":            {"0.0000001", "1e-7"},
		"1234567.25":           {"1234567.25", "1234567.25"},
		"1e6":                  {"1000000", "1000000"},
		`"007"`:                {"007", `"007"`},
	} {
		t.Run(answer, func(t *testing.T) {
			var path, body string
			c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				path, body = r.URL.Path, string(text)
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, `{"ids":[{"id":`+answer+`}]}`)
			}, func(p *api.Provider) {
				p.HTTP.Grant = api.HTTPCall{Path: "/grants", Pending: "status == 202", Keep: map[string]string{"id": "body.ids[0].id", "all": "{'ids': body.ids}"}}
				p.HTTP.Poll = &api.HTTPCall{Path: "/tickets/${kept.id}", Body: map[string]any{"id": "${kept.id}", "all": "${kept.all}"}}
			})
			kept, err := json.Marshal(c.Call(t.Context(), Call{Op: Grant}).Kept)
			if err != nil {
				t.Fatal(err)
			}
			poll := Call{Op: Poll}
			d := json.NewDecoder(bytes.NewReader(kept))
			d.UseNumber()
			if err := d.Decode(&poll.Kept); err != nil {
				t.Fatal(err)
			}
			c.Call(t.Context(), poll)
			if path != "/tickets/"+want.path {
				t.Errorf("path %s, want %s", path, want.path)
			}
			if all := `{"all":{"ids":[{"id":` + want.body + `}]},"id":` + want.body + `}`; body != all {
				t.Errorf("body %s, want %s", body, all)
			}
		})
	}
}

func TestTheCostOfAnExpressionIsLimited(t *testing.T) {
	numbers := "[1,2,3,4,5,6,7,8,9,10]"
	long := numbers + ".all(a, " + numbers + ".all(b, " + numbers + ".all(c, " + numbers + ".all(d, " + numbers + ".all(e, " + numbers + ".all(f, a+b+c+d+e+f > 0))))))"
	c := newClient(t, func(http.ResponseWriter, *http.Request) {}, func(p *api.Provider) { p.HTTP.Grant.Granted = long })
	began := time.Now()
	if r := c.Call(t.Context(), Call{Op: Grant}); r.Outcome != Failed {
		t.Errorf("%+v", r)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestACallToAHangingOrUnreachableProviderFails(t *testing.T) {
	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) })
	c := newClient(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hung:
		case <-r.Context().Done():
		}
	}, nil)
	if r := c.Call(t.Context(), Call{Op: Grant}); r.Outcome != Failed || r.Reason != ReasonProviderTimeout || !r.Sent {
		t.Errorf("hanging provider: %+v", r)
	}
	unreachable := newClientOf(t, api.Provider{Type: api.ProviderHTTP, Endpoint: "http://127.0.0.1:1", TimeoutSeconds: 1, HTTP: &api.HTTPCalls{}}, []string{"127.0.0.0/8"})
	if r := unreachable.Call(t.Context(), Call{Op: Grant}); r.Outcome != Failed || r.Reason != ReasonProviderUnreachable || r.Sent {
		t.Errorf("unreachable provider: %+v", r)
	}
}

// Nothing was granted without a connection, so nothing can leak.
func TestACallWhoseTLSHandshakeFailsIsNotSent(t *testing.T) {
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() })
	for name, tc := range map[string]struct{ address, reason, message string }{
		"an untrusted certificate": {untrusted.Listener.Addr().String(), ReasonProviderMisconfigured, "the certificate of the provider is not trusted"},
		"a server without TLS":     {plain.Listener.Addr().String(), ReasonProviderUnreachable, "cannot connect to the provider"},
		"a server without answer":  {hanging.Addr().String(), ReasonProviderTimeout, "the provider did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClientOf(t, api.Provider{Type: api.ProviderHTTP, Endpoint: "https://" + tc.address, TimeoutSeconds: 1, HTTP: &api.HTTPCalls{}}, []string{"127.0.0.0/8"})
			if r := c.Call(t.Context(), Call{Op: Grant}); r.Outcome != Failed || r.Reason != tc.reason || !strings.HasPrefix(r.Message, tc.message) || r.Sent {
				t.Errorf("got %+v, want %s, %s", r, tc.reason, tc.message)
			}
		})
	}
}

func TestTheCertificateOfAProviderIsVerifiedWithTheAuthoritiesOfHTTPCA(t *testing.T) {
	stub := double.New(time.Now)
	server := httptest.NewTLSServer(stub)
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, p := range map[string]api.Provider{
		"http": {Type: api.ProviderHTTP, HTTP: &api.HTTPCalls{CA: ca, Grant: api.HTTPCall{Method: "PUT", Path: "/v1/records/${ip}", Body: map[string]any{"podUID": "u"}}}},
		"cmdb": {Type: api.ProviderCMDB, CanRevoke: true, HTTP: &api.HTTPCalls{CA: ca}}, // with the default calls
	} {
		p.Endpoint, p.TimeoutSeconds = server.URL, 1
		c := newClientOf(t, p, []string{"127.0.0.0/8"})
		if r := c.Call(t.Context(), Call{Op: Grant, Key: name, IPs: []string{"10.0.0.1"}}); r.Outcome != Done {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := len(stub.Stats().Current); n == 0 {
		t.Error("nothing was granted")
	}
	for endpoint, tc := range map[string]struct{ ca, want string }{
		"https://127.0.0.1": {"none", "http.ca: contains no certificate in PEM"},
		"http://127.0.0.1":  {ca, "http.ca: no certificate is verified with an http endpoint"},
	} {
		egress, err := NewEgress([]string{"127.0.0.1"}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (Factory{Egress: egress}).New(api.Provider{Type: api.ProviderHTTP, Endpoint: endpoint, HTTP: &api.HTTPCalls{CA: tc.ca}}); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", endpoint, err, tc.want)
		}
	}
}

// The name is allowed; the address it resolves to, or the redirect, is not.
func TestAProviderURLReachesOnlyAllowedAddresses(t *testing.T) {
	reached := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(inner.Close)
	at, err := url.Parse(inner.URL)
	if err != nil {
		t.Fatal(err)
	}
	byName := newClientOf(t, api.Provider{Type: api.ProviderHTTP, Endpoint: "http://localhost:" + at.Port(), TimeoutSeconds: 1, HTTP: &api.HTTPCalls{}}, nil)
	if r := byName.Call(t.Context(), Call{Op: Grant}); r.Outcome != Failed || r.Reason != ReasonHostNotAllowed || reached {
		t.Errorf("name that resolves to loopback: %+v, reached %v", r, reached)
	}
	redirecting := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL, http.StatusTemporaryRedirect)
	}, nil)
	if r := redirecting.Call(t.Context(), Call{Op: Grant}); r.Outcome != Failed || r.Reason != ReasonHostNotAllowed || reached {
		t.Errorf("redirect: %+v, reached %v", r, reached)
	}
}

// A proxy would connect to addresses that Egress denies.
func TestCallsUseNoProxyOfTheEnvironment(t *testing.T) {
	if (Factory{}).client("provider.example.com", nil).Transport.(sendOnce).next.(*http.Transport).Proxy != nil {
		t.Error("calls use a proxy")
	}
}

func TestOnlyListedHostsAndAddressesAreAllowed(t *testing.T) {
	e, err := NewEgress([]string{"db.corp", "*.example.com", "api.corp:8443", "10.1.2.3"}, nil, []string{"10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"db.corp:443": true, "DB.corp.:443": true, "x.example.com:80": true, "a.b.example.com:80": true, "example.com:80": false, "evilexample.com:80": false,
		"api.corp:8443": true, "api.corp:443": false, "10.1.2.3:1": true, "10.1.2.4:1": false, "db.corp.evil.com:443": false, "169.254.169.254:80": false,
	} {
		name, port, _ := strings.Cut(host, ":")
		if got := e.CheckHost(name, port) == nil; got != want {
			t.Errorf("host %s: allowed %v", host, got)
		}
	}
	some, err := NewEgress(nil, []string{"10.9.0.0/16", "127.0.0.0/8"}, []string{"10.9.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		egress  *Egress
		address string
		want    bool
	}{
		{e, "10.5.5.5", true}, {e, "8.8.8.8", true}, {e, "127.0.0.1", false}, {e, "169.254.169.254", false}, {e, "::1", false}, {e, "::ffff:127.0.0.1", false},
		{e, "0.0.0.0", false}, {e, "224.0.0.1", false}, {e, "fe80::1", false}, {e, "10.0.0.1", false}, {e, "::ffff:10.0.0.1", false},
		// The metadata services of clouds.
		{e, "100.100.100.200", false}, {e, "168.63.129.16", false}, {e, "192.0.0.192", false}, {e, "fd00:ec2::254", false}, {e, "fd20:ce::254", false},
		// IPv4 addresses behind NAT64.
		{e, "64:ff9b::a9fe:a9fe", false}, {e, "64:ff9b::a00:1", false}, {e, "64:ff9b::808:808", true}, {e, "64:ff9b:1::808:808", false},
		{some, "64:ff9b::a09:304", true}, {some, "64:ff9b::808:808", false},
		{some, "10.9.3.4", true}, {some, "10.8.3.4", false}, {some, "127.0.0.1", true}, {some, "10.9.0.1", false},
	} {
		if got := tc.egress.CheckAddress(netip.MustParseAddr(tc.address)) == nil; got != tc.want {
			t.Errorf("address %s: allowed %v", tc.address, got)
		}
	}
}

func TestARejectedHostOrAddressNamesTheKeyThatAllowsIt(t *testing.T) {
	e, err := NewEgress(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, err := range map[string]error{"provider-hosts": e.CheckHost("db.corp", "443"), "provider-networks": e.CheckAddress(netip.MustParseAddr("127.0.0.1"))} {
		if want := "(key " + key + " of ConfigMap permission-centre;"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}
